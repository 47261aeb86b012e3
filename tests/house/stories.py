#!/usr/bin/env python3
"""The generator of stories: no mark of a pattern is left, every story is another, the same numbers give the same stories, sentences
begin with a capital. Usage: stories.py ROOT"""
import re
import subprocess
import sys

root = sys.argv[1]


def stories(*arguments):
    out = subprocess.run([sys.executable, root + "/tools/stories", *arguments], capture_output=True, text=True, check=True).stdout
    return out.strip().split("\n\n")


texts = stories("-n", "3000", "--seed", "7", "--jobs", "2")
assert len(texts) == 3000 and len(set(texts)) == 3000, "stories repeat"
assert stories("-n", "5", "--first", "1200", "--seed", "7") == texts[1200:1205], "a story depends on how many are asked for"
assert stories("-n", "5", "--seed", "8") != texts[:5], "the seed does nothing"
words = [len(t.split()) for t in texts]
assert 60 <= min(words) and max(words) <= 400 and 120 <= sum(words) / len(words) <= 220, (min(words), max(words))
for t in texts:
    wrong = re.search(r'[\[\]{}|]|\b(\w+) \1\b| [.,!?]|\.\.|""|[.] [a-z]|\n[a-z]|\b[Aa] [aeiou](?!n?e\b|ne\b|se)', t)
    assert not wrong, f"'{wrong.group()}' in: {t}"
    assert t.count('"') % 2 == 0, f"an open quotation in: {t}"
print(f"{len(texts)} stories, {sum(words)} words, {len(set(re.findall('[a-z]+', ' '.join(texts).lower())))} different")
