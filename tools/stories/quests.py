"""quests.py - plots about a thing: lost and found, carried to somebody, needed for something, given away or exchanged."""
from beats import (afraid, agree, cast, ending, friend, glad, helper, is_child, lesson, meet, named, obstacle, oneday, opening, refused, rest, sad,
                   stranger, thanks, treasure)
from text import Thing, Who
from words import ANIMALS, DISHES, FOODS, GIFTS, JOBS, TREASURES


def trouble(s):
    """The obstacle befalls {x}; the hero tries in vain, is helped. Paragraphs 2 and 3 of many plots."""
    s.say("[Suddenly|Then|But then|Just then] {how}." if s["obstacle"] != "lost" else "{^how}.")
    if s.chance(0.4):
        s.say('"Oh no!" cried {h}. "[My {x.bare}!|What now?|How could that happen?]"' if not s.slots.get("foreign") else '"Oh no!" cried {h}. "What now?"')
    s["try"] = s["tries"][0]
    s.say("{^try}.")
    if s.chance(0.55):
        s["try"] = s["tries"][1]
        s.say("Then {try}.", "{^try}.", "Again {h.he} tried. {^try}.")
    if s.chance(0.6):
        sad(s)
    s.par()
    if s.chance(0.2):
        refused(s)
    meet(s)
    agree(s)
    s.say("{^fix}.")
    if s.chance(0.5):
        glad(s)
    thanks(s)


def lost_treasure(s):
    treasure(s)
    opening(s)
    giver = s.random()
    if giver < 0.5:
        s.say("{^h.his} favourite thing was {x.one}. {^adult} had given {x.it} to {h.him}." if not s["x"].plural else
              "{^h.he} had {x} that {adult} had made for {h.him}.")
        s.maybe(0.5, "{h} took {x.it} everywhere.", "{^h.he} even slept with {x.it}.", "Nobody else was allowed to touch {x.it}.")
    else:
        s.say("For {h.his} birthday {h.he} had got {x.one}.", "{^h.he} had found {x.one} near {spot3}.", "{^h.he} had {x.one}, and {h.he} was very proud of {x.it}.")
    s.par()
    oneday(s)
    s.say("{oneday}, {h} [was playing|went for a walk] near {spot2} with {h.his} {x.bare}.", "{oneday}, {h} took {h.his} {x.bare} to {spot2}.")
    obstacle(s)
    trouble(s)
    s.par()
    after = s.random()
    if after < 0.35:
        s.say("From then on {h} [held {x.the} tight|took better care of {x.the}] when {h.he} went to {spot2}.",
              "{h} and {p} played together until it got dark.", "{h} let {p} [play with|hold] {x.the} for a while.")
    if s.chance(0.25):
        s.say("Then they shared {h.s} {food}, half for {h} and half for {p}.", "Then the two of them played {game}.")
    ending(s, "help" if s.chance(0.7) else "careful",
           ['"And what do we do now?" asked {p}. {h} looked at {x.the}. "The same again, please!" {h.he} said. {p} laughed until {p.his} belly hurt.',
            'On the way home {h} stumbled again. But this time {h.he} held {x.the} with both hands.',
            '"Next time," said {adult}, "leave your {x.bare} at home." "But then I would not have met {p}!" said {h}.'])


def gift_for_friend(s):
    friend(s)
    s["foreign"] = True
    gift = s.pick(GIFTS)
    s["x"] = Thing(gift, bare=gift if " of " not in gift else gift.split(" of ")[0])
    opening(s)
    s.par()
    s.say("It was {f.s} birthday. {f} was {h.s} best friend.", "{f}, {h.s} best friend, had a birthday.", "That day {h} was invited to {f.s} birthday party.",
          "{h} wanted to visit {h.his} friend {f}, who had been [ill|sad] for a week.")
    s.say("{h} wanted to bring {f.him} {x.a}.", "{h} had made {x.a} for {f.him}, all by {h.himself}.", "So {h} put {x.a} into a basket and set off down the {path}.")
    obstacle(s, ("high", "water", "hole", "lost", "heavy", "dark") if "cake" not in gift and "pie" not in gift and "bread" not in gift else ("high", "hole", "lost"))
    s.par()
    s.say("On the way {h} [sang a song|whistled|counted {h.his} steps].", "{sky}, and {h} walked fast.", "Everything went well until {h} came to {spot2}.")
    trouble(s)
    s.maybe(0.4, '"Come with me to {f}!" said {h}. So they went on together.', "{p} came along, for the way was more fun with two.")
    s.par()
    s.say("When {h} [knocked at {f.s} door|came to {f}], {f} was [already waiting|standing at the window].", "At last {h} stood in front of {f.s} door.")
    s.say('"[Happy birthday|This is for you|Look what I have for you]!" said {h}.')
    glad(s, "f")
    s.say("{^f.he} [hugged|thanked] {h} and put {x.the} in the middle of the table.", '"This is the best present of all," said {f}.',
          "Then {h} told {f} what had happened on the way.")
    ending(s, "friend", ['"And what have you got in your other hand?" asked {f}. {h} looked down. It was a {food} that {h.he} had forgotten to eat.',
                         "They [ate|laughed|played {game}] until it got dark, and {f} said that it was the best day of the year."])


def medicine(s):
    s["foreign"] = True
    s["x"] = Thing(*s.pick([("bottle of medicine",), ("bag of herbs",), ("jar of honey",), ("pot of hot soup",), ("blue flower",), ("bag of tea leaves",)]))
    s["x"].bare = s["x"].noun.split(" of ")[0] if " of " in s["x"].noun else "flower"
    s["x"].the = "the " + s["x"].bare
    s["job"] = s.pick(["doctor", "baker", "gardener", "wise old woman", "beekeeper"])
    opening(s)
    s.par()
    oneday(s)
    s.say("{oneday}, {adult} [was ill and had to stay in bed|had a bad cough|had a fever].")
    s.say('"[If only I had|I need|What would help is] {x.a}," said {adult} [with a weak voice|and coughed].', '"Only {x.a} can help," said the {job}.')
    s.say('"I will get it!" said {h} and [put on {h.his} hat|ran out of the door].', '"I will go," said {h}. "I am not afraid."')
    s.say("{h} went all the way to {spot2}, where the {job} lived, and [asked for|got] {x.a}." if s["job"] != "wise old woman" else
          "{h} went all the way to {spot2}, where the wise old woman gave {h.him} {x.a}.")
    s.par()
    s.say("On the way back {h} hurried.", "But the way back was long.", "{h} held {x.the} tight and ran down the {path}.")
    obstacle(s, ("high", "water", "hole", "lost", "heavy") if "soup" not in s["x"].noun else ("hole", "lost", "high"))
    if "soup" in s["x"].noun:
        s["how"] = s.pick(["{h} put {x.it} down for a moment, and then {x.they} {x.was} nowhere to be found"])
        s["obstacle"] = "lost"
        s["tries"] = s.some(["{h} looked near {spot2}, but there was nothing", "{h} asked everyone {h.he} met, but nobody had seen {x.it}"], 2)
        helper(s, ["smell"])
        s["fix"] = "{p} could smell the soup from far away and led {h} straight to {x.the}, behind a bush near {spot3}"
    trouble(s)
    s.par()
    s.say("{h} [ran home as fast as {h.he} could|did not stop once on the way home].")
    s.say("{^adult} took the medicine and slept all night." if "medicine" in s["x"].noun else "{^adult} [smelled|looked at] {x.the} and smiled.")
    s.say("The next morning {adult} was [well again|much better] and made {dish} for everyone.", "After two days {adult} could get up again.")
    ending(s, "help" if s.chance(0.5) else "brave", ["{^adult} laughed. \"The best medicine was you,\" {adult.he} said."])


def ingredient(s):
    s["foreign"] = True
    need, where = s.pick([("egg", "hen"), ("cup of milk", "cow"), ("jar of honey", "bee"), ("bag of nuts", "squirrel"), ("basket of apples", "pig"),
                          ("bag of flour", "mouse"), ("basket of berries", "bear"), ("cup of milk", "goat"), ("lemon", "parrot"), ("basket of carrots", "rabbit")])
    cake = {"egg": "pancakes", "cup of milk": "rice pudding", "jar of honey": "a honey cake", "bag of nuts": "a nut bread", "basket of apples": "an apple pie",
            "bag of flour": "fresh bread", "basket of berries": "a berry tart", "lemon": "a lemon cake", "basket of carrots": "a carrot cake"}[need]
    s["cake"], s["x"] = cake, Thing(need, bare=need.split(" of ")[0])
    s["cake_noun"] = cake.split(" ", 1)[1] if cake.startswith("a") and cake[1] in " n" else cake
    opening(s)
    if s["h"].kind == where:
        s["h"].kind = "girl" if s["h"].pronoun == "she" else "boy"
    s.par()
    oneday(s)
    s.say("{oneday}, {h} wanted to make {cake}.", '"[Today|Now] I will make {cake}!" said {h}.', "{oneday}, {h} and {adult} wanted to bake. \"Let us make {cake},\" said {adult}.")
    s.say("But there was no {x.bare} left in the kitchen." if " of " not in need else "But there was no {x.bare} of " + need.split(" of ")[1] + " in the kitchen.",
          "But one thing was missing: {x.a}.")
    s["o"] = stranger(s, where)
    s["osays"], s["ofood"] = ANIMALS[where][1], ANIMALS[where][2]
    s.say("So {h} went to {o.a} who lived near {spot2}.", "\"I will ask the {o.kind},\" said {h}, and off {h.he} went.")
    s.say('"Please, may I have {x.a}?" asked {h}.', '"Good day," said {h}. "Could you give me {x.a}?"')
    way = int(s.random() * 4)
    s.par()
    if way == 0:
        s.say('"Gladly," said {o}, "if you [sing me a song|tell me a joke|scratch my back|bring me some water] first."')
        s.say("That was easy. {h} did it twice, just to be sure.", "So {h} did, and {o} was very pleased.", "{h} did what {o} asked, and {o} laughed.")
    elif way == 1:
        s.say('"[Oh dear|I am sorry]," {osays} {o}. "I would like to help, but [I am stuck behind this gate|my door is blocked by a stone|I have hurt my foot]."' if where != "bee" else
              '"I am sorry," buzzed {o}. "There is a stone in front of my door."')
        s.say("{h} did not wait. {^h.he} helped {o} at once, and soon all was well.", '"Then I will help you first," said {h}, and {h.he} did.')
        s.say('"[Now it is my turn|One good turn deserves another]," said {o} and gave {h.him} {x.a}.')
    elif way == 2:
        s.say('"What do I get for it?" asked {o}. {h} thought about it. "[The first piece of the {cake_noun}|A big piece when it is done|A seat at our table]," {h.he} said.' if cake not in
              ("pancakes", "fresh bread") else '"What do I get for it?" asked {o}. "You may eat with us," said {h}.')
        s.say('"That is fair," said {o}.', '"Done!" {osays} {o}.' if where != "turtle" else '"Done!" said {o}.')
    else:
        s.say('"Of course," said {o}. "Take it, but do not drop it."', '"For you, always," said {o}.')
    s.say("{h} carried {x.the} home as carefully as if it were made of glass.", "With {x.the} in both hands {h} walked home, step by step.")
    s.par()
    if s.chance(0.35):
        s.say("Then [they mixed and stirred|{h} mixed and stirred], and the whole house smelled [wonderful|sweet|of {cake_noun}].")
        s.say("But when {h} took it out of the oven, it was [black as coal|flat as a plate|hard as a stone]. {h} had [forgotten the time|forgotten the sugar|fallen asleep].",)
        s.say('"Never mind," said {adult}. "[We will try again|The second one is always better|Even the birds want something to eat]."')
        s.say("And the second time it worked.", "So they began again, and this time {h} did not take {h.his} eyes off the oven.")
    else:
        s.say("Soon the whole house smelled [wonderful|sweet|of {cake_noun}].", "{h} [stirred|mixed] with a big spoon until {h.his} arm hurt, and at last the work was done.")
    s.say("{h} invited everyone, and {o} [got the biggest piece|sat right beside {h.him}].", "Of course {o} came too, and there was enough for all.",
          "They ate until not a crumb was left.")
    ending(s, "share", ['"And what is in it?" asked {o}. "Only good things," said {h}, "and a little bit of you."' if where == "hen" else
                        '"What shall we bake tomorrow?" asked {h}. "Tomorrow," said {o}, "I bake and you bring the {food}s."',
                        "{h} licked the spoon. \"That was the best part,\" {h.he} said with a white nose."])


def found_thing(s):
    s["foreign"] = True
    treasure(s, pair=False)
    opening(s)
    s.par()
    oneday(s)
    s.say("{oneday}, {h} found {x.a} near {spot2}.", "{oneday}, something [shiny|strange|small] lay on the {path}. It was {x.a}.")
    s.say('"How beautiful!" {h.he} said. "Whose can it be?"', '"What a nice {x.bare}!" said {h}. "Somebody must miss it."',
          "{h} looked left and right, but there was nobody.")
    wants = s.chance(0.5)
    if wants:
        s.say("{h} wanted to keep it very much. {^h.he} hid it under {h.his} bed, but that night {h.he} could not sleep.",
              "{h} would have liked to keep it. But then {h.he} thought: somebody is looking for it.")
        s.say('"If I had lost it, I would be sad," {h.he} [thought|whispered].')
    asks = s.some([k for k in s["place"].helpers if k not in s["kinds"]], 2)
    s["a1"], s["a2"] = stranger(s, asks[0]), stranger(s, asks[1])
    s.par()
    s.say('So {h} went to ask. "Is this your {x.bare}?" {h.he} asked {a1.a}.', '{h} met {a1.a}. "Did you lose {x.a}?" {h.he} asked.')
    s.say('"[No, mine is bigger|No, what would I do with that|No, but it is very pretty]," said {a1}.')
    s.say('"Is it yours?" {h} asked {a2.a}. "[I wish it were|Not mine|I have never seen it before]," said {a2}. "[Ask near {spot3}|Somebody was crying near {spot3}|Try it near {spot3}]."')
    friend(s)
    s.par()
    s.say("Near {spot3} sat a {f.kind} [named|called] {f}, who [looked very sad|was looking under every leaf|was crying].")
    s.say('"Have you lost something?" asked {h}. "Yes," said {f}, "my {x.bare}. [My grandmother gave it to me|I have had it since I was small|I cannot sleep without it]."')
    s.say("{h} held out {x.the}.", "Then {h} put {x.the} into {f.s} hands." if is_child(s["f"]) else "Then {h} put {x.the} down in front of {f}.")
    glad(s, "f")
    s.say('"You are honest," said {f}. "Do you want to be my friend?"', '"Others would have kept it," said {f}. "Come, [let us share my {food}|let us play with it together]."')
    s.maybe(0.6, "And so {h} got something better than {x.a}: a friend.", "They played {game} until the sun went down.")
    ending(s, "friend" if not wants else "truth", ['"And what did you find today?" asked {adult}. "A friend," said {h}.'])


def trade_chain(s):
    opening(s)
    things = s.some(TREASURES, 4)
    for i, t in enumerate(things):
        s["t%d" % i] = Thing(t)
    asks = s.some([k for k in s["place"].helpers if k not in s["kinds"]] + ["cat", "crow"], 3)
    for i, k in enumerate(asks):
        s["a%d" % (i + 1)] = stranger(s, k)
    s.par()
    oneday(s)
    s.say("{oneday}, {h} went out with {t0.a}.", "{h} had {t0.a}, but {h.he} [did not play with it any more|thought it was boring].")
    s.say('On the {path} {h.he} met {a1.a}. "What a fine {t0.bare}," said {a1}. "I will give you {t1.a} for it."')
    s.say('"[Why not|Gladly|All right]," said {h}, and they swapped.')
    s.say('A little later {h} met {a2.a}. "I need {t1.a}," said {a2}. "You can have my {t2.bare}."', 'Then came {a2.a}, who had {t2.a} and wanted {t1.a} very much.')
    s.say("So they swapped, too.", "They swapped, and both were pleased.")
    s.par()
    end = int(s.random() * 3)
    if end == 0:
        s.say("Near {spot2} {a3.a} was [crying|sitting all alone]. \"I have lost my {t2.bare},\" {a3.he} said.")
        s.say("{h} looked at {h.his} {t2.bare}. Then {h.he} gave it away, just like that.")
        s.say('"I have nothing to give you," said {a3}. "That does not matter," said {h}.')
        s.say("{h} came home with empty hands and a warm heart.", "On the way home {h} sang, although {h.his} pockets were empty.")
        topic = "share"
    elif end == 1:
        s.say("Near {spot2} {a3.a} was standing, and {a3.he} had {t0.a}. It was the same one!")
        s.say('"I will give you my {t2.bare} for it," said {h} quickly. And so {h} came home with {t0.a}.')
        s.say('"[You were gone all day|What did you do all day]," said {adult}. "I went [once around the world|on a long trip]," said {h}, "and now I know how much I like my {t0.bare}."')
        topic = "greedy"
    else:
        s.say("In the end {h} swapped {t2.the} for a {food}, because {h.he} was so hungry.")
        s.say("{^h.he} ate it in three bites, and then there was nothing left.")
        s.say('"Was it a good trade?" asked {adult}. "It was delicious," said {h}.')
        topic = "greedy"
    if s.chance(0.6):
        lesson(s, topic)
    else:
        rest(s)


def kindness_returned(s):
    """First the hero helps somebody small; later that one helps with just what it can do."""
    treasure(s)
    obstacle(s)
    opening(s)
    s.par()
    oneday(s)
    s.say("{oneday}, {h} heard a [thin|small|weak] voice near {spot2}. \"Help! Help!\" It was {p.a}.")
    s.say("{^p} was [caught in a thorn bush|stuck between two stones|trapped under a branch|tangled in an old net].")
    s.say('"Hold still," said {h} and [carefully freed {p.him}|worked until {p} was free].', "{h} was {trait}, but above all {h.he} was kind, and soon {p} was free again.")
    s.say('"Thank you," said {p}. "One day I will help you, too." {h} laughed, for {h.he} could not imagine that.' if "small" in s["p"].skills else
          '"Thank you," said {p}. "I will not forget it."')
    s.par()
    s.say("[Some days later|A week later|When the {season} was almost over], {h} was near {spot3} with {h.his} {x.bare}.")
    s.say("[Suddenly|Then|But then] {how}." if s["obstacle"] != "lost" else "{^how}.")
    s["try"] = s["tries"][0]
    s.say("{^try}.")
    sad(s)
    s.par()
    s.say("Then {h} heard a voice {h.he} knew. It was {p}!", "But who came there? It was {p}!", '"Do you remember me?" somebody asked. It was {p}.')
    s.say('"You helped me," said {p}. "Now I will help you."', '"Now it is my turn," said {p}.')
    s.say("{^fix}.")
    glad(s)
    s.maybe(0.5, "From then on the two were friends.", "They shared a {food} and talked until evening.", "{h} was glad that {h.he} had stopped that day.")
    ending(s, "help")


def rescue_little_one(s):
    """Somebody very small is in trouble; the hero brings the one who can help."""
    baby, home, parent = s.pick([("baby bird", "nest", "robin"), ("kitten", "barn", "cat"), ("duckling", "pond", "duck"), ("lamb", "field", "sheep"),
                                 ("puppy", "yard", "dog"), ("baby squirrel", "tree", "squirrel"), ("little frog", "pond", "frog"), ("little owl", "tree", "owl")])
    s["x"] = Thing(baby, bare=baby.split()[-1] if not baby.startswith(("baby", "little")) else baby)
    s["foreign"] = True
    s["nest"] = home
    opening(s)
    s["kinds"].add(parent)
    s.par()
    oneday(s)
    s.say("{oneday}, {h} heard a soft [crying|peeping|whimpering] near {spot2}.", "{oneday}, {h} stopped near {spot2}. Something was [crying|whimpering].")
    s["water"] = s.pick(["stream", "brook", "river", "pond"])
    where = int(s.random() * 4)
    if where == 0 and baby not in ("duckling", "little frog"):
        s.say("There was {x.a} on a stone in the middle of the {water}, and the water was rising.")
        skill = helper(s, ["swim"])
        s["fix"] = "{p} swam out to the stone, let {x.the} climb on {p.his} back and brought it safely to {h}"
        s["try"] = "{h} tried to step into the water, but it was too deep"
    elif where == 1 and baby not in ("baby bird", "little owl", "baby squirrel"):
        s.say("There was {x.a} at the bottom of a deep pit. It could not get out by itself.")
        skill = helper(s, ["dig", "strong"])
        s["fix"] = s.pick(["{p} dug a slope into the wall of the pit, and {x.the} could walk out by itself"] if skill == "dig" else
                          ["{p} pushed a long branch into the pit and held it firmly, and {x.the} climbed up to {h}"])
        s["try"] = "{h} reached down with both arms, but the pit was too deep"
    elif where == 2:
        s.say("There was {x.a} on a high branch. It had gone up, but it did not dare to come down.")
        skill = helper(s, ["climb", "tall"])
        s["fix"] = ("{p} climbed up, took {x.the} gently and carried it down" if skill == "climb" else
                    "{p} put {p.his} head beside the branch, and {x.the} slid down {p.his} long neck")
        s["try"] = "{h} called and called, but {x.the} only held on more tightly"
    else:
        s.say("There was {x.a}, all alone. It had lost its way home.")
        skill = helper(s, ["fly", "smell"])
        s["fix"] = ("{p} flew high up and looked for the {nest}. \"That way!\" {p.he} called, and {h} carried {x.the} there" if skill == "fly" else
                    "{p} sniffed at {x.the} and then at the ground, and followed the trail back to the {nest}")
        s["try"] = "{h} asked where it lived, but {x.the} did not know the way"
    s.say('"Do not be afraid," said {h}. "I will help you."', '"You poor little thing," said {h}.')
    s.say("{^try}.")
    s.par()
    s.say("So {h} ran to {spot3}, where {p.a} lived.", "{h} ran for help and found {p.a}.", "{h} shouted for help, and {p.a} came.")
    s["ptalk"] = s["psays"] if s["psays"] != "said slowly" else "said"
    s.say('"Please come quickly!" said {h}. "{^x.a} is in trouble!"')
    s.maybe(0.7, '"Show me the way," said {p}.', '"I am on my way," {ptalk} {p}.')
    s.say("{^fix}.")
    s["par_"] = Who("the " + parent, parent, "she")
    s.par()
    s.say("Soon {par_} [came running|was there], the mother of {x.the}." if parent not in ("robin", "owl") else "Soon {par_} came flying, the mother of {x.the}.")
    s.say("{^par_.he} had looked for it everywhere.", "{^par_.he} had been so worried.")
    s.say('"You saved my little one," said {par_}. "[You are a hero.|How can I thank you?|You are always welcome in our {nest}.]"')
    glad(s)
    ending(s, "help" if s.chance(0.6) else "brave", ['"What did you do today?" asked {adult}. "Not much," said {h}. "I only got wet feet and a new friend."' if where == 0 else
                                                   "And the next day {x.the} was back at the same place. It wanted to play it again!"])


def message(s):
    """A letter must get there in time."""
    friend(s)
    s["foreign"] = True
    s["x"] = Thing("letter")
    s["job"] = s.pick(JOBS)
    opening(s)
    s.par()
    oneday(s)
    s.say("{oneday}, the {job} came to {h}. \"I have a letter for {f}, and it is very important,\" the {job} said. \"[You have fast legs|I must stay here|My foot hurts]. Can you take it?\"",
          "{oneday}, {adult} gave {h} a letter. \"Take it to {f}, near {spot3}, and do not lose it,\" {adult.he} said.")
    s.say("{h} was proud that {h.he} was trusted with it.", '"You can rely on me," said {h}.', "{h} put the letter under {h.his} hat and ran off.")
    temptation = s.random()
    if temptation < 0.4:
        s["game_"] = s["game"]
        s.say("Near {spot2} some others were playing {game}. \"Come and play!\" they called. \"[Later|Not now|I have a job to do],\" said {h}, although {h.he} wanted to stay.")
    elif temptation < 0.7:
        s.say("Near {spot2} {h} stopped to eat {h.his} {food}. \"Only for a moment,\" {h.he} said.")
    obstacle(s, ("high", "water", "hole", "lost"))
    trouble(s)
    s.par()
    s.say("At last {h} came to {f}, out of breath, and handed {f.him} the letter.", "{h} ran the rest of the way and knocked at {f.s} door.")
    what = int(s.random() * 4)
    s.say("{f} opened it and read. \"Come to the party tonight,\" it said, \"and bring the one who brings you this letter.\"" if what == 0 else
          "{f} opened it and laughed. It said: \"Please give the one who brings you this letter a {food}.\"" if what == 1 else
          "{f} read it, and {f.his} eyes grew wide. \"My sister is coming home tomorrow!\" {f.he} cried." if what == 2 else
          "{f} read it and smiled. \"It is an invitation to the summer party, and it is for both of us,\" {f.he} said.")
    s.say("{h} was glad that {h.he} had not given up.", "So the long way had been worth it.", "{h} forgot how tired {h.he} was.")
    ending(s, "careful" if temptation < 0.7 else "patient")


PLOTS = [(lost_treasure, 4), (gift_for_friend, 3), (medicine, 2), (ingredient, 3), (found_thing, 2), (trade_chain, 2), (kindness_returned, 3),
         (rescue_little_one, 3), (message, 2)]
