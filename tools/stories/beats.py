"""beats.py - what all plots share: the cast, beginnings, obstacles with their ways out, helpers, feelings, endings.

Slots that cast() fills: h the hero, where, spot, spot2, spot3, home, season, sky. A plot adds x (a thing), f (a friend),
p (the helper) and whatever else it needs before it says a pattern that uses them.
"""
from text import Thing, Who
from words import (ANIMALS, BOYS, COLOURS, DISHES, FOODS, GAMES, GIRLS, LIKES, PAIRS, PETS_HE, PETS_SHE, PLACES, SEASONS, TRAITS, TREASURES,
                   WEATHER)

ADULTS = ["mother", "father", "grandmother", "grandfather", "aunt", "uncle", "big sister", "big brother"]
FEMALE = {"mother", "grandmother", "aunt", "big sister"}

# ---- the cast ----


def is_child(who):
    return who.kind in ("girl", "boy")


def named(s, kind):
    """Somebody of a kind with a proper name that nobody else of this story has."""
    used = s.slots.setdefault("used", set())
    for _ in range(50):
        she = kind == "girl" or (kind not in ("boy", "girl") and s.chance(0.5))
        name = s.pick((GIRLS if she else BOYS) if kind in ("girl", "boy") else (PETS_SHE if she else PETS_HE))
        if name[:2] not in used:
            break
    used.add(name[:2])
    skills = ANIMALS[kind][0].split() if kind in ANIMALS else ()
    s.slots.setdefault("kinds", set()).add(kind)
    return Who(name, kind, "she" if she else "he", skills=skills)


def stranger(s, kind):
    """An animal that the text calls by its kind: "the old owl"."""
    s.slots.setdefault("kinds", set()).add(kind)
    adjective = s.pick(["", "old ", "little ", "big ", "young ", "grey ", "friendly ", "fat ", "", ""])
    if "small" in ANIMALS[kind][0] and adjective in ("big ", "fat "):
        adjective = "tiny "
    who = Who("the " + kind, kind, s.pick(["she", "he"]), skills=ANIMALS[kind][0].split())
    who.a = "a " + adjective + kind
    who.adj = adjective
    return who


def cast(s, kinds=None):
    place = s.pick(PLACES)
    s["place"] = place
    heroes = [k for k in place.heroes if kinds is None or k in kinds] or ["girl", "boy"]
    s["h"] = named(s, s.pick(heroes))
    s["where"] = place.where
    s["spot"], s["spot2"], s["spot3"] = s.some(place.spots, 3)
    s["home"] = s.pick(place.home.split("|"))
    season = s.pick(list(SEASONS))
    s["season"] = season
    s["signs"] = s.pick(SEASONS[season][1])
    sky = s.pick([k for k in WEATHER if not (season == "winter" and k in ("rainy",))])
    s["sky"] = s.pick(WEATHER[sky])
    s["weather"] = sky
    s["game"], s["game2"] = s.some(GAMES, 2)
    s["food"], s["food2"] = s.some(FOODS, 2)
    s["dish"] = s.pick(DISHES)
    s["path"] = s.pick(place.path)
    s["like"] = s.pick(LIKES)
    trait = s.pick(list(TRAITS))
    s["trait"] = trait
    s["does"] = TRAITS[trait].replace("[he|she]", "{h.he}")
    size = s.pick(["little", "small", "young", "little", "little"])
    s["hero_phrase"] = "%s %s" % (size, s["h"].kind)
    adult = s.pick(ADULTS)
    s["adult"] = Who("{h.his} " + adult, adult, "she" if adult in FEMALE else "he", adult=True)
    s["adult_word"] = adult
    return s


def friend(s, slot="f", kind=None):
    """A second named figure of the same place."""
    place = s["place"]
    kinds = [k for k in place.heroes if k in ("girl", "boy") or k not in s["kinds"]] or ["dog"]
    s[slot] = named(s, kind or s.pick(kinds))
    return s[slot]


def helper(s, skills, slot="p"):
    """Somebody of the place who has one of the skills; the skill found."""
    place = s["place"]
    fits = [(k, x) for k in place.helpers if k not in s["kinds"] for x in ANIMALS[k][0].split() if x in skills]
    if not fits:
        fits = [(k, x) for k in ANIMALS if k not in s["kinds"] for x in ANIMALS[k][0].split() if x in skills and k in
                "mouse crow dog cat mole horse owl spider duck goat firefly".split()] or [("crow", skills[0])]
    kind, skill = s.pick(fits)
    s[slot] = stranger(s, kind)
    s[slot + "says"] = ANIMALS[kind][1]
    s[slot + "food"] = ANIMALS[kind][2]
    return skill


def treasure(s, slot="x", pair=True):
    if pair and s.chance(0.12):
        noun = s.pick(PAIRS)
        s[slot] = Thing(s.pick(COLOURS) + " " + noun, plural=True, bare=noun)
    else:
        noun = s.pick(TREASURES)
        plain = s.chance(0.15) or " " in noun
        s[slot] = Thing(noun if plain else s.pick(COLOURS + ["old", "new", "little"]) + " " + noun, bare=noun)
    return s[slot]


def friends(s):
    """Says that {f} is the hero's friend."""
    s.say("{^h.his} best friend was a {f.kind} [named|called] {f}.", "{h} had a friend [named|called] {f}." if is_child(s["f"]) else "{h} had a friend, {f} the {f.kind}.", "Next door lived {f}, a {f.kind}. The two were friends.",
          "{h} had a good friend, a {f.kind} [named|called] {f}.", "Not far away lived {h.his} friend {f}, a {f.kind}.")


# ---- beginnings ----


def opening(s):
    """Who the hero is and where. One to four sentences."""
    h = s["h"]
    style = int(s.random() * 6)
    s["dated"] = style in (2, 4)
    if style == 0:
        s.say("Once upon a time there was a {hero_phrase} [named|called] {h}.", "Once there was a {hero_phrase} [named|called] {h}.",
              "Long ago, near {spot}, there lived a {hero_phrase} [named|called] {h}.")
        s.say("{h} lived in a {home} near {spot}.", "{^h.he} lived with {adult} in a {home} near {spot}.",
              "{^h.his} {home} was not far from {spot}.")
    elif style == 1:
        s.say("{h} was a {hero_phrase} who {does}.", "{h} was a {hero_phrase} who loved to {like}.",
              "{h}, a {hero_phrase}, lived near {spot}.")
    elif style == 2:
        s.say("It was a [fine|cold|quiet|grey|lovely] {season} morning." if s["season"] != "summer" else
              "It was a [fine|warm|quiet|hot|lovely] summer morning.", "It was {season}. {signs}.", "{signs}. It was {season}.")
        s.say("In a {home} near {spot}, a {hero_phrase} [named|called] {h} woke up.",
              "A {hero_phrase} [named|called] {h} [looked out of the window|stretched and yawned|ran outside].")
    elif style == 3:
        s.say("Near {spot} there lived a {hero_phrase} [named|called] {h}.", "In a {home} near {spot} lived a {hero_phrase} [named|called] {h}.",
              "Everyone near {spot} knew {h}, the {hero_phrase}.")
        s.say("{h} {does}.", "{h} loved to {like}.", "{^h.he} was [known to be|always] very {trait}.")
    elif style == 4:
        s.say("One [morning|day|afternoon] in {season}, a {hero_phrase} [named|called] {h} [was sitting|was playing|went for a walk] near {spot}.",
              "One {season} [morning|day|afternoon], {h} the {h.kind} was [on the way to|sitting near|playing near] {spot}.")
        s.maybe(0.6, "{sky}.", "{signs}.")
    else:
        s.say("{h} was a {hero_phrase}.", "This is the story of {h}, a {hero_phrase}.", "This is a story about a {hero_phrase} [named|called] {h}.")
        s.say("{h} was very {trait} and loved to {like}.", "{^h.he} {does}.", "{^h.he} lived near {spot} with {adult}.")
    if s.chance(0.45):
        s.say("Most of all {h.he} loved to {like}.", "Every day {h.he} went to {spot2}.", "{^h.he} was {trait}, and {h.he} {does}.") if style in (0,) else \
            s.maybe(0.7, "{sky}.", "{signs}.")
    h.known = True


def oneday(s):
    """The turn from how things were to what happened."""
    if s["dated"]:
        s["oneday"] = s.pick(["That day", "Later that day", "Soon after that", "Before long", "After a while", "That very day", "A little later"])
        return
    s["oneday"] = s.pick(["One day", "One morning", "One afternoon", "One {season} day", "One {weather} day", "One evening", "Then, one day",
                          "But one day", "Early one morning", "On a {weather} morning"])


# ---- feelings ----


def feel(s, who, p):
    """{_w} is somebody by name, or with probability p by pronoun: only where the sentence before was about them."""
    w = s[who]
    s["_w"] = w
    if s.chance(p):
        s["_w"] = Who(w.he, w.kind, w.pronoun)
        s["_w"].s = w.his


def sad(s, who="h"):
    feel(s, who, 0.4)
    s.say("{_w} was very sad.", "{_w} began to cry.", "Tears ran down {_w.s} [cheeks|face].", "{_w} felt like crying.", "{_w} let {_w.his} head hang.",
          "{_w} sat down on the ground and [sighed|cried].", "{_w} swallowed hard.", "{_w} did not know what to do.", "{_w.s} heart felt heavy.")


def glad(s, who="h"):
    feel(s, who, 0.0)
    s.say("{_w} was so happy that {_w.he} [danced|jumped up and down|laughed out loud|clapped|sang].", "{_w} [smiled|laughed] with joy.",
          "{_w} was very happy.", "{_w.s} eyes [shone|lit up].", "{_w} jumped for joy.", "{_w} smiled from ear to ear.", "{_w} felt warm inside.")


def afraid(s, who="h"):
    feel(s, who, 0.4)
    s.say("{_w} was afraid.", "{_w.s} heart was beating fast.", "{_w.s} knees were shaking.", "{_w} was so frightened that {_w.he} could not move.",
          "{_w} held {_w.his} breath.", "{_w} shivered.")


def thanks(s):
    """The hero thanks p."""
    s.say('"Thank you, [thank you|dear {p.kind}|{p.kind}]!" [cried|said] {h}.', '"Thank you!" said {h}. "[You are a true friend|I will never forget this|You saved the day]."',
          '{h} thanked {p} [again and again|with all {h.his} heart].', '"How can I ever thank you?" asked {h}.',
          '"You are so kind," said {h}.')
    s.maybe(0.75, '"[It was nothing|Oh, that was easy|You are welcome]," {psays} {p}.' if s["psays"] != "said slowly" else '"You are welcome," said {p} slowly.',
            '{p} smiled. "[Friends help each other|That is what neighbours are for|Next time you can help me]," {p.he} said.',
            '"One day you will help me," said {p}.', '{h} gave {p} [some|a few] {pfood}, and {p} was [happy|pleased|delighted].' if s["pfood"][-1:] == "s" else
            '{h} gave {p} some {pfood}, and {p} was [happy|pleased|delighted].')


# ---- obstacles ----
# skill words of ANIMALS -> how it is done; "how" happens to {x}; "try" fails; all of them about one place.

OBSTACLES = {
    "high": {
        "skills": "fly climb tall",
        "how": ["{h} threw {x.it} into the air, and {x.they} landed on {high.a}",
                "the wind took {x.it} and carried {x.it} up into {high.a}", "a gust of wind blew {x.it} to the top of {high.a}",
                "a cheeky magpie grabbed {x.it} and dropped {x.it} on top of {high.a}", "{h} threw {x.it} too high, and {x.they} got stuck on {high.a}"],
        "try": ["{h} jumped as high as {h.he} could, but {high.the} was much too high", "{h} tried to climb up, but {h.he} slid down again",
                "{h} threw a stick, but the stick got stuck too", "{h} shook {high.the}, but nothing moved",
                "{h} stood on a box, but {h.he} was still too small"],
        "fix": {
            "fly": ["{p} spread {p.his} wings, flew to the top and came back with {x.the}", "{p} flew up in a circle, took {x.the} and brought {x.it} down",
                    "With three beats of {p.his} wings {p} was up there, and {x.the} fell right into {h.s} arms"],
            "climb": ["{p} climbed up step by step, took {x.the} and climbed down again", "{p} ran up {high.the} as if it were flat ground and pushed {x.it} down",
                      "{p} went up, higher and higher, and threw {x.the} down to {h}"],
            "tall": ["{p} stretched {p.his} long neck and simply took {x.the} down",
                     "{p} was so tall that {p.he} only had to reach up"],
        },
    },
    "water": {
        "skills": "swim",
        "how": ["{x.they} slipped from {h.his} hands and fell into {water.the}", "{x.they} rolled down the bank and splashed into {water.the}",
                "{h} tripped over a root, and {x.they} flew into {water.the}", "the wind blew {x.it} into {water.the}"],
        "try": ["{h} reached out with a branch, but the branch was too short", "{h} put one foot into the water, but it was cold and deep",
                "{h} threw stones to make waves, but {x.they} only drifted farther away", "{h} lay down on the bank and stretched out, but {x.they} {x.was} too far away",
                "{h} could not swim"],
        "fix": {"swim": ["{p} jumped in with a splash, swam out and pushed {x.the} back to the bank",
                         "{p} dived down and came up again with {x.the}", "{p} swam out in a few quick strokes and brought {x.it} back"]},
    },
    "hole": {
        "skills": "small dig",
        "how": ["{x.they} rolled away and disappeared into {hole.a}", "{x.they} slipped out of {h.his} hands and dropped into {hole.a}",
                "{h} stumbled, and {x.they} fell right into {hole.a}", "{x.they} bounced twice and vanished in {hole.a}"],
        "try": ["{h} reached in as far as {h.he} could, but {hole.the} was too deep", "{h} poked around with a stick, but that only pushed {x.it} farther in",
                "{h} called into {hole.the}, but only an echo answered", "{h} tried to crawl in, but {h.he} was too big"],
        "fix": {
            "small": ["{p} was small enough to crawl inside, and soon {p.he} pushed {x.the} out", "{p} slipped into the dark hole and came back pulling {x.the} behind {p.him}"],
            "dig": ["{p} began to dig, and earth flew in all directions until {x.the} came to light", "{p} dug with both front feet, and soon {x.the} lay in the sunshine again"],
        },
    },
    "heavy": {
        "skills": "strong",
        "how": ["a big {big} tipped over and fell on {x.it}", "an old {big} came rolling down and {x.the} {x.was} stuck under it",
                "{x.they} got stuck under a heavy {big}"],
        "try": ["{h} pushed with all {h.his} might, but the {big} did not move", "{h} pulled until {h.his} face was red, but it was no use",
                "{h} used a branch to lift it, but the branch broke"],
        "fix": {"strong": ["{p} put {p.his} shoulder against the {big} and pushed, and slowly it rolled to the side",
                           "{p} took a deep breath, lifted the {big} and set it down somewhere else",
                           "{p} pulled once, pulled twice, and at the third pull the {big} moved"]},
    },
    "torn": {
        "skills": "sew",
        "how": ["{x.they} got caught on a thorn and tore", "{x.they} got stuck on a nail, and with a loud rip there was a big hole in {x.it}"],
        "try": ["{h} tried to hold the pieces together, but they fell apart again", "{h} tried to tie a knot, but it came loose",
                "{h} stuck a leaf over the hole, but it fell off"],
        "fix": {"sew": ["{p} spun a fine silver thread and sewed the hole shut, stitch by stitch",
                        "{p} worked all afternoon with {p.his} thin, strong thread, and in the end nobody could see where the hole had been"]},
    },
    "dark": {
        "skills": "light night",
        "how": ["it got dark, and {x.they} fell somewhere into the [grass|bushes]", "{h} dropped {x.it} on the way home, and it was already night"],
        "try": ["{h} felt around with both hands, but {h.he} only found [stones|leaves|wet grass]", "{h} opened {h.his} eyes wide, but {h.he} saw nothing at all",
                "{h} waited for the moon, but the moon stayed behind the clouds"],
        "fix": {"light": ["{p} began to glow and flew low over the ground, and there, in the little circle of light, {x.they} lay"],
                "night": ["{p} could see in the dark as if it were day, and soon {p.he} found {x.the} behind a stone",
                          "{p} looked around with big, bright eyes and walked straight to {x.the}"]},
    },
    "lost": {
        "skills": "smell wise fly",
        "how": ["suddenly {x.they} {x.was} gone", "when {h} looked into {h.his} bag, {x.they} {x.was} not there any more",
                "{h} put {x.it} down for a moment, and then {x.they} {x.was} nowhere to be found"],
        "try": ["{h} looked [under the leaves|behind the wall|in every corner] near {spot2}, but there was nothing", "{h} went all the way back to {spot2}, but {x.they} {x.was} not there",
                "{h} asked everyone {h.he} met, but nobody had seen {x.it}", "{h} turned over every stone near {spot3}"],
        "fix": {
            "smell": ["{p} sniffed at {h.s} hands, put {p.his} nose to the ground and ran off, and before long {p.he} stopped [at|near] {spot3}. There {x.they} lay"],
            "wise": ['"Think," said {p}. "Where were you when you last had {x.it}?" {h} thought hard. "Near {spot3}!" {h.he} cried, and that was where {x.they} {x.was}'],
            "fly": ["{p} flew high up and looked down on everything. \"I see something near {spot3}!\" {p.he} called, and there {x.they} {x.was}"],
        },
    },
}


UNIQUE = "sea harbour well chimney lighthouse mast hayloft moat canal waterfall park".split()


class Spot:
    """A part of the place that has the thing: "the well", "a well"."""

    def __init__(self, noun):
        self.noun, self.the = noun, "the " + noun
        self.a = self.the if noun.split()[-1] in UNIQUE or "roof" in noun else "a " + noun

    def __str__(self):
        return self.noun


def obstacle(s, allowed=None):
    """Chooses an obstacle that the hero cannot solve alone; fills its slots, and skill, how, tries, fix."""
    own = set(s["h"].skills)
    x = s["x"]
    hard = any(w in x.noun for w in ("drum", "bell", "button", "ring", "marble", "shell", "key", "cup", "spoon", "car", "train", "horse", "jar", "stone", "pie", "cake"))
    names = [n for n in OBSTACLES if (allowed is None or n in allowed) and not own & set(OBSTACLES[n]["skills"].split())
             and not (n == "torn" and hard) and not (n == "torn" and x.plural and x.bare in ("glasses", "skates", "crayons", "marbles"))]
    if not names:
        names = ["lost"]
    name = s.pick(names)
    o = OBSTACLES[name]
    place = s["place"]
    s["water"], s["high"], s["hole"] = Spot(s.pick(place.water)), Spot(s.pick(place.high)), Spot(s.pick(place.hole))
    s["big"] = s.pick(place.big).replace("old ", "")
    s["obstacle"] = name
    s["how"] = s.pick([t for t in o["how"] if not (hard and ("wind" in t or "threw" in t))])
    s["tries"] = s.some(o["try"], 2)
    skill = helper(s, o["skills"].split())
    if skill not in o["fix"]:
        skill = list(o["fix"])[0]
        for k in ANIMALS:
            if skill in ANIMALS[k][0].split() and k not in s["kinds"]:
                s["p"] = stranger(s, k)
                s["psays"], s["pfood"] = ANIMALS[k][1], ANIMALS[k][2]
                break
    s["skill"] = skill
    s["fix"] = s.pick(o["fix"][skill])
    return name


def meet(s):
    """p comes along."""
    s.say("Just then {p.a} came along.", "At that moment {p.a} came by.", "{^p.a} had seen [everything|it all].", "Then {h} met {p.a} near {spot2}.",
          "{^p.a} [heard {h.him}|looked up] and came closer.", "After a while {p.a} [passed by|came down the {path}].")
    talk = s["psays"] if s["psays"] != "said slowly" else "asked"
    s["ptalk"] = talk
    s.say('"[What is the matter|What is wrong|Why do you look so sad|What happened]?" asked {p}.', '"[Why are you crying|Can I help you|Do you need help]?" asked {p}.',
          '"[Hello there|Good day|Well, well], what is the matter?" {ptalk} {p}.')
    s.maybe(0.8, '{h} told {p} [everything|the whole story|what had happened].', '"I cannot [do it|manage] alone," said {h}.',
            '"Oh, {p.kind}," said {h}, "I do not know what to do."' if False else '"I have tried everything," said {h}.')


def agree(s):
    """Why p helps: freely, for food, because of manners, after doubts."""
    way = int(s.random() * 5)
    if way <= 1:
        s.say('"[Do not worry|That is easy|Leave it to me|I know what to do]," {ptalk} {p}.', '"I can help you," said {p}.', '"Let me try," said {p}.')
    elif way == 2:
        s.say('"I will help you," said {p}, "but first I need something to eat. I am so hungry."')
        s.say("{h} looked in {h.his} pockets and found some {pfood}." if not is_child(s["h"]) or s["pfood"] not in ("flies", "worms", "hay") else
              "{h} shared {h.his} {food} with {p}.", "{h} shared {h.his} {food} with {p}.", "So {h} gave {p} half of {h.his} {food}.")
    elif way == 3:
        s.say('"[I am busy|I have no time]," {ptalk} {p}. "Please!" said {h}. {p} [looked at {h} for a while and nodded|saw the tears in {h.his} eyes and stopped].',
              '"Why should I help you?" asked {p}. "Because you are the only one who can," said {h}. {p} liked that answer.')
    else:
        s.say('"I am not sure that I can do it," said {p}. "[Please try|I know you can]," said {h}.', '{p} was a little afraid, but {p.he} wanted to help.')


def refused(s):
    """Somebody else says no first."""
    kinds = [k for k in s["place"].helpers if k not in s["kinds"]] or ["cat"]
    s["q"] = stranger(s, s.pick(kinds))
    s.say('First {h} asked {q.a}. "[I have no time|I want to sleep|I am busy|That is not my problem]," said {q} and [walked on|turned away|closed {q.his} eyes].',
          '{h} saw {q.a}. "Can you help me?" {h.he} asked. "[Not today|Not me|I am too tired]," said {q}.')


# ---- endings ----

LESSONS = {
    "help": ["it is good to ask for help", "together many things are easy", "a friend in need is worth more than gold", "no one is too small to help",
             "a kind word opens many doors"],
    "share": ["things are more fun when you share them", "half a cake with a friend tastes better than a whole one alone", "sharing makes one rich"],
    "truth": ["it is better to tell the truth", "a lie gets heavier every day", "saying sorry makes the heart light"],
    "brave": ["being brave means doing it even when you are afraid", "things look smaller when you walk up to them", "fear goes away when you look at it"],
    "patient": ["good things take time", "one must not give up too soon", "step by step one gets to the top"],
    "modest": ["it is not good to boast", "the fastest is not always the first", "one can be small and clever"],
    "friend": ["a good friend is the best treasure", "one friend is better than a hundred toys", "everything is easier with a friend"],
    "quarrel": ["friends can quarrel and still be friends", "it is never too late to say sorry", "nobody is always right"],
    "work": ["one should think of tomorrow", "first comes the work and then the play", "summer does not last for ever"],
    "careful": ["one should look where one is going", "it is good to keep a promise", "one should think first and act later"],
    "self": ["everyone is good at something", "it is fine to be different", "nobody has to be like the others"],
    "greedy": ["enough is better than too much", "he who wants everything ends up with nothing", "one should be happy with what one has"],
}


def lesson(s, topic):
    s["lesson"] = s.pick(LESSONS[topic])
    s.say("From that day on {h} knew that {lesson}.", "{h} had learned that {lesson}.", "And {h} never forgot that {lesson}.", '"You see," said {adult}, "{lesson}."',
          "That day {h} learned that {lesson}.", "That night, before {h.he} fell asleep, {h} thought: {lesson}.")


def rest(s):
    """A quiet end."""
    s.say("That evening {h} ate {dish} and went to bed early.", "In the evening the whole family ate {dish} together.", "That night {h} slept [very well|like a stone|soundly].",
          "When the moon came up, {h} was already asleep.", "{h} went home, tired and happy.", "The stars came out, and everything was quiet near {spot}.",
          "{h} told {adult} [all about it|the whole story], and they laughed together.", "And if nobody has woken {h.him}, {h.he} is still asleep.",
          "{^h.he} [yawned|smiled], closed {h.his} eyes and dreamed of {spot2}.")


def ending(s, topic, jokes=()):
    s.par()
    kind = s.random()
    if jokes and kind < 0.35:
        s.say(*jokes)
    elif kind < 0.75:
        lesson(s, topic)
        s.maybe(0.3, "And that was the end of a [long|good|wonderful|strange] day.", "What a day!")
    else:
        rest(s)
        if s.chance(0.3):
            lesson(s, topic)
