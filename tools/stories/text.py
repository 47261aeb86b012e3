"""text.py - patterns become sentences; people and things know their own grammar.

A pattern is text with two kinds of marks:

    [red|blue|dark green]     one of the alternatives; they nest, and one may be empty
    {h} {h.his} {x.a} {^x}    a slot: a person, a thing or a text of the story; .name asks for a form, ^ for a capital

Sentences begin with a capital by themselves, "a" becomes "an" where it must. A pattern with a slot that the story does not
have is a mistake of ours and raises KeyError.
"""
import random
import re

# ---- patterns ----

_cache = {}


def _parse(text, at, depth):
    """Alternatives up to the closing bracket (or the end): (list of sequences, position behind)."""
    options, parts, plain = [], [], []

    def flush():
        if plain:
            parts.append("".join(plain))
            plain.clear()

    while at < len(text):
        c = text[at]
        if c == "[":
            flush()
            inner, at = _parse(text, at + 1, depth + 1)
            parts.append(inner)
            continue
        if depth and c in "|]":
            flush()
            options.append(parts)
            parts = []
            at += 1
            if c == "]":
                return options, at
            continue
        if c == "{":
            flush()
            end = text.index("}", at)
            name, _, form = text[at + 1:end].partition(".")
            parts.append((name.lstrip("^"), form, name.startswith("^")))
            at = end + 1
            continue
        plain.append(c)
        at += 1
    if depth:
        raise ValueError("unclosed [ in: " + text)
    flush()
    return [parts], at


def _expand(parts, story, out):
    for part in parts:
        if isinstance(part, str):
            out.append(part)
        elif isinstance(part, list):
            _expand(part[int(story.random() * len(part))], story, out)
        else:
            name, form, capital = part
            value = story.slots[name]
            value = getattr(value, form) if form else str(value)
            if "[" in value or "{" in value:
                value = story.fill(value)
            out.append(value[0].upper() + value[1:] if capital else value)


_starts = re.compile(r'(^|[.!?] +|\." +)([a-z])')
_an = re.compile(r"\b([Aa]) (?=[aeiouAEIOU])(?!one\b|once\b|us[ei]|uni|eu)")
_spaces = re.compile(r" {2,}")


def finish(text):
    text = _spaces.sub(" ", text).strip().replace(" .", ".").replace(" ,", ",")
    text = _an.sub(r"\1n ", text)
    return _starts.sub(lambda m: m.group(1) + m.group(2).upper(), text)


# ---- people and things ----

_forms = {"she": ("she", "her", "her", "herself"), "he": ("he", "him", "his", "himself"), "it": ("it", "it", "its", "itself")}


class Who:
    """Somebody. `name` is what the text calls them: a proper name, or a phrase such as "the old owl"."""

    def __init__(self, name, kind, pronoun, article="a", skills=(), adult=False):
        self.name, self.kind, self.pronoun, self.skills, self.adult = name, kind, pronoun, skills, adult
        self.he, self.him, self.his, self.himself = _forms[pronoun]
        self.s = name + "'s"
        self.a = article + " " + kind
        self.the = "the " + kind

    def __str__(self):
        return self.name


class Thing:
    """A thing: "red ball", "mittens". Plural where it ends so in `plural`."""

    def __init__(self, noun, plural=False, bare=None):
        self.noun, self.plural = noun, plural
        self.bare = bare or noun.split()[-1]  # without its adjective, for later mentions
        self.a = noun if plural else "a " + noun
        self.one = "some " + noun if plural else "a " + noun
        self.the = "the " + self.bare
        self.it = "them" if plural else "it"
        self.they = "they" if plural else "it"
        self.was = "were" if plural else "was"
        self.itis = "they are" if plural else "it is"
        self.itwas = "they were" if plural else "it was"
        self.this = "these" if plural else "this"

    def __str__(self):
        return self.noun


# ---- a story under way ----


class Story:
    """Collects the paragraphs of one story. The same seed gives the same story on every machine."""

    def __init__(self, seed):
        self.random = random.Random(seed).random
        self.slots = {}
        self.paragraphs, self.now = [], []

    def __setitem__(self, name, value):
        self.slots[name] = value

    def __getitem__(self, name):
        return self.slots[name]

    def pick(self, items):
        return items[int(self.random() * len(items))]

    def some(self, items, n):
        """n different items in random order."""
        rest, out = list(items), []
        for _ in range(n):
            out.append(rest.pop(int(self.random() * len(rest))))
        return out

    def chance(self, p):
        return self.random() < p

    def fill(self, pattern):
        tree = _cache.get(pattern)
        if tree is None:
            tree = _cache[pattern] = _parse(pattern, 0, 0)[0][0]
        out = []
        _expand(tree, self, out)
        return "".join(out)

    def say(self, *patterns):
        self.now.append(finish(self.fill(self.pick(patterns))))

    def maybe(self, p, *patterns):
        if self.chance(p):
            self.say(*patterns)

    def par(self):
        """Ends the paragraph."""
        if self.now:
            self.paragraphs.append(" ".join(self.now))
            self.now = []

    def text(self):
        self.par()
        return "\n".join(self.paragraphs)
