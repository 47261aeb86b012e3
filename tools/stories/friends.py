"""friends.py - plots between people: sharing, truth, quarrels, newcomers, boasts, surprises, promises, work and play."""
from beats import afraid, cast, ending, friend, friends, glad, helper, is_child, lesson, meet, named, oneday, opening, rest, sad, stranger, treasure
from text import Thing, Who
from words import ANIMALS, DISHES, FOODS, GIFTS, TREASURES


def sharing(s):
    friend(s)
    food = s.chance(0.5)
    if food:
        s["x"] = Thing(*s.pick([("basket of strawberries",), ("bag of sweets",), ("big cake",), ("basket of cherries",), ("bag of nuts",), ("plate of pancakes",),
                                ("jar of honey",), ("big melon",), ("bag of plums",), ("box of biscuits",)]))
        s["x"].bare = s["x"].noun.split(" of ")[-1] if " of " in s["x"].noun else s["x"].bare
        many = " of " in s["x"].noun and "honey" not in s["x"].noun
        s["x"].the, s["x"].it, s["x"].they = "the " + s["x"].bare, "them" if many else "it", "they" if many else "it"
        s["x"].was = "were" if many else "was"
    else:
        treasure(s, pair=False)
    opening(s)
    friends(s)
    s.par()
    oneday(s)
    s.say("{oneday}, {h} got {x.a} from {adult}.", "{oneday}, {adult} gave {h} {x.a}. It was a [present|surprise].")
    s.say("{f} came and looked at {x.the} with big eyes. \"May I [have some|try one|have a little]?\" {f.he} asked." if food else
          "{f} came by and saw {x.the}. \"May I play with it, too?\" {f.he} asked.")
    s.say('"No," said {h}, "[it is all mine|I want everything for myself|I got it, not you]."' if not food or not many else '"No," said {h}, "they are all mine."')
    s.say("{f} went away [with slow steps|without a word|very sad].")
    s.par()
    if food:
        s.say("{h} sat down behind {spot2} and ate and ate.", "{h} hid near {spot2} and ate as fast as {h.he} could.")
        s.say("But the more {h.he} ate, the worse it tasted, and soon {h.his} belly hurt.", "Soon {h.he} had a bellyache, and {h.he} was all alone.")
    else:
        s.say("{h} played with {x.the} near {spot2}, first like this and then like that.", "{h} took {x.the} to {spot2} and played all alone.")
        s.say("But alone it was [no fun|boring]. Nobody laughed, nobody clapped, nobody said anything.", "After a while it was boring. A {x.bare} cannot talk.")
    s.say("{^h.he} thought of {f.s} face.", "Then {h} heard {f} laughing somewhere else.", "{h} thought of all the times when {f} had shared with {h.him}.")
    s.par()
    turn = int(s.random() * 3)
    if turn == 0:
        s.say("So {h} got up and looked for {f}. \"[I am sorry|I was not nice],\" {h.he} said. \"[Let us share|Half of it is for you].\"")
    elif turn == 1:
        s.say('"What is wrong?" asked {adult}. "I said no to {f}," said {h}. "Then go and say yes," said {adult}.')
        s.say("{h} ran to {f} at once.")
    else:
        s.say("Just then {f} came back, with a {food} in {f.his} hand. \"Do you want half of it?\" {f.he} asked." if is_child(s["f"]) else
              "Just then {f} came back with a {food}. \"Do you want half of it?\" {f.he} asked.")
        s.say("{h} turned red. \"You give me something, although I gave you nothing?\" {h.he} said. \"Of course,\" said {f}.")
    s.say("{f} was not angry any more.", "{f} smiled, and everything was good again.", '"That is all right," said {f}.')
    s.say("Together they {eat}.".replace("{eat}", "ate what was left, and it tasted much better than before" if food else "played until evening, and it was much more fun than before"))
    ending(s, "share", ['"Next time I will say no," said {f}, "and then you can see how it feels." Then they both laughed.'])


def broken_and_truth(s):
    friend(s)
    things = ["blue vase", "window", "best plate", "flower pot", "old clock", "big jug", "mirror", "lamp", "tea cup", "honey jar"]
    s["x"] = Thing(s.pick(things))
    opening(s)
    friends(s)
    s.par()
    oneday(s)
    s.say("{oneday}, {h} and {f} were playing {game} [inside|in the house], although {adult} had said that they should not." if s["x"].noun != "window" else
          "{oneday}, {h} was playing with a ball near the house, although {adult} had said that {h.he} should not.",
          "{oneday}, {h} was running through the house, although {adult} had said: \"Do not run inside.\"")
    s.say("Crash! {^x.the} lay on the floor in a hundred pieces." if s["x"].noun != "window" else "Crash! The window was broken.")
    afraid(s)
    s.say('"Who did that?" asked {adult}.')
    blame = int(s.random() * 3)
    who = s.pick(["the cat", "the wind", "the dog"])
    s["blamed"] = who if s["h"].kind not in who else "the wind"
    s["blame_him"] = "it"
    s.par()
    if blame == 0:
        s.say('"It was {blamed}," said {h} quickly. {h} did not look up.')
        s.say("So {blamed} had to stay outside in the rain that night, and {h} heard a sad noise at the door." if s["blamed"] != "the wind" else
              '"But the air is quite still today," said {adult} and looked at {h} for a long time.')
    elif blame == 1:
        s.say("{h} said nothing and hid the pieces under {h.his} bed." if s["x"].noun != "window" else "{h} said nothing and hid the ball.")
        s.say("All day long {h} was afraid that somebody would find out. {^h.he} could not eat and could not play.")
    else:
        s.say('"It was not me," said {h}.')
        s.say("{^adult} swept up the pieces and said nothing. That was worse than any scolding.")
    s.say("That night {h} could not sleep. {^h.his} belly felt as if there were a stone in it.", "The lie sat on {h.his} chest like a fat frog.",
          "{h} turned from one side to the other. The lie was too big for the bed.")
    s.par()
    s.say('In the end {h} got up and went to {adult}. "It was me," {h.he} whispered. "I am so sorry."', 'The next morning {h} took a deep breath. "I did it," {h.he} said. "I broke {x.the}."')
    s.say("{^adult} took {h.him} in {adult.his} arms. \"I knew it,\" {adult.he} said. \"I was only waiting for you to tell me.\"",
          "{^adult} was quiet for a while. \"Thank you for telling me the truth,\" {adult.he} said. \"That was hard.\"",
          '"{^x.a} can be replaced," said {adult}. "But it is good that you told me."')
    s.maybe(0.6, "Together they glued the pieces, one after another." if s["x"].noun not in ("window",) else "Together they put in a new window.",
            "{h} helped in the kitchen for a week to make up for it.")
    if "the wind" != s["blamed"] and blame == 0:
        s.say("{h} also said sorry to {blamed} and gave it something good to eat.")
    s.say("Suddenly {h} felt as light as a feather.", "And that night {h} slept very well.")
    ending(s, "truth", ['"But why did {x.the} fall?" asked {adult}. "It wanted to play {game}, too," said {h}.'] if s["x"].noun != "window" else ())


def new_one(s):
    friend(s)
    s["odd"] = s.pick(["spoke in a strange way", "had a funny hat", "wore two different socks", "had very big ears", "was very quiet", "had a long nose",
                       "came from far away", "had a scar on the chin" if is_child(s["f"]) else "had only one ear", "was much smaller than the others",
                       "laughed very loudly", "was afraid of water"])
    opening(s)
    s.par()
    oneday(s)
    s.say("{oneday}, somebody new came to live near {spot2}. {^f.his} name was {f}, and {f.he} {odd}.",
          "{oneday}, there was a new {f.kind} near {spot2}. {f} {odd}.")
    s.say("The others [stared|whispered|laughed]. Nobody wanted to play with {f}.", "{f} sat alone and watched the others play {game}.",
          '"[How strange|Look at that one]," the others said.')
    side = s.chance(0.5)
    s.say("{h} {sidetext}".replace("{sidetext}", "laughed, too, but it did not feel good." if side else "looked at {f} and remembered how it felt to be alone."))
    s.par()
    how = int(s.random() * 4)
    if how == 0:
        s.say("At noon {h} sat down next to {f} and held out half of {h.his} {food}. \"Do you like {food}s?\" {h.he} asked.")
        s.say("{f} nodded and smiled for the first time.")
    elif how == 1:
        s.say("Then {h.s} ball rolled right in front of {f}. {f} kicked it back, so well that everyone was amazed.")
        s.say('"Where did you learn that?" asked {h}. "At home," said {f}. "I will show you."')
    elif how == 2:
        s.say("That afternoon {h} lost the way in the fog. {^h.he} called, but nobody answered, only {f}. {f} knew the way.")
        s.say('"Thank you," said {h}. "And I am sorry that we laughed." "That is all right," said {f}.')
    else:
        s.say("{h} took a deep breath and went over to {f}. \"Do you want to play {game2}?\" {h.he} asked.")
        s.say('"I do not know how it goes," said {f}. "I will teach you," said {h}.')
    s.say("{f} knew [songs|stories|games|jokes] that nobody had ever heard.", "They found out that they both loved to {like}.",
          "It turned out that {f} could [whistle with two fingers|walk on {f.his} hands|draw better than anyone|tell the best stories]."
          if is_child(s["f"]) else "It turned out that {f} could tell the best stories.")
    s.say("Soon the others came, one after another, and wanted to join in.", "The next day everyone wanted to sit next to {f}.")
    ending(s, "friend" if s.chance(0.5) else "self", ['"And why do you {odd_do}?" somebody asked. "Why do you ask so much?" said {f} and grinned.'.replace("{odd_do}", "live here")])


def quarrel(s):
    friend(s)
    treasure(s, pair=False)
    opening(s)
    friends(s)
    s.maybe(0.5, "They did everything together.", "They saw each other every day.")
    s.par()
    oneday(s)
    about = int(s.random() * 4)
    if about == 0:
        s.say("{oneday}, they found {x.a} near {spot2}. \"I saw it first!\" cried {h}. \"No, I did!\" cried {f}.")
        s.say("{h} pulled on one side and {f} on the other, until there was a loud crack. Now {x.the} was broken.")
    elif about == 1:
        s.say('{oneday}, {h} wanted to play {game}, but {f} wanted to play {game2}. "You always decide!" cried {h}. "No, you do!" cried {f}.')
        s.say("They turned their backs on each other.")
    elif about == 2:
        s.say("{oneday}, {f} [stepped on|sat down on] {h.s} {x.bare}. \"You did that on purpose!\" cried {h}. \"I did not!\" said {f}.")
        s.say('"I never want to play with you again!" said {h}.')
    else:
        s.say("{oneday}, {h} said something mean about {f.s} {thing}. It was meant as a joke, but {f} did not laugh.".replace("{thing}", s.pick(["new hat", "drawing", "singing", "big feet", "haircut"] if is_child(s["f"]) else ["singing", "big feet", "long tail", "ears"])))
        s.say("{f} turned around and went home without a word.")
    s.par()
    s.say("{h} went home and slammed the door.", "{h} played alone near {spot2}.", "The whole day they did not speak to each other.")
    s.say("But alone everything was [boring|only half as much fun].", "But when {h} saw something funny, there was nobody to tell.", "At first {h} was angry. Later {h.he} was only sad.")
    s.par()
    peace = int(s.random() * 4)
    if peace == 0:
        s.say("{h} picked {flowers} and put them in front of {f.s} door. At the same moment {f} opened it, with {food} in {f.his} hand. \"This is for you,\" they both said at once.".replace("{flowers}", s.pick(["some daisies", "three red apples", "a few cherries"])).replace("{food}", "a {food}"))
    elif peace == 1:
        s.say('"What is the most important thing in a quarrel?" asked {adult}. {h} did not know. "The end," said {adult}.')
        s.say("So {h} went to {f}. \"I am sorry,\" {h.he} said. \"Me too,\" said {f}.")
    elif peace == 2:
        s.say("Then there was a storm, and {h} knew that {f} was afraid of thunder. {^h.he} ran through the rain to {f.s} house.")
        s.say('"You came," said {f}. "Of course," said {h}. They sat under one blanket until the storm was over.')
    else:
        s.say("{h} wrote on a piece of paper: \"Sorry.\" {^h.he} folded a little boat out of it and let it float to {f}.")
        s.say("Soon the boat came back. Now it said: \"Sorry, too.\"")
    s.say("After that they were better friends than before.", "They laughed about it, and soon they were playing {game} again.", "And when they thought about it, neither of them knew how it had begun.")
    ending(s, "quarrel", ['"Who was right?" asked {adult}. "We both were," said {h}. "And we both were silly."'])


def boast_and_race(s):
    fast, slow = s.pick([("hare", "turtle"), ("horse", "snail"), ("deer", "duck"), ("dog", "hedgehog"), ("fox", "mole"), ("goat", "frog"), ("rabbit", "pig"),
                         ("eagle", "crab"), ("cat", "hen")])
    s["b"], s["f"] = stranger(s, fast), named(s, slow)
    s["h"] = s["f"]
    s["hero_phrase"] = "little " + slow
    opening(s)
    s.par()
    s.say('"I am the fastest of all," said the {b.kind} every day. "Nobody can beat me."', "The {b.kind} was very proud of {b.his} fast legs and laughed at {h}, who was so slow.")
    oneday(s)
    s.say('"[I will race you|Let us have a race|Let us see who is first at {spot2}]," said {h}. Everybody laughed.',)
    s.say("The {b.kind} laughed so hard that {b.he} had to sit down.")
    s.say("The next morning they all came to watch. \"One, two, three, go!\" called {r.a}.".replace("{r.a}", "the referee, an old " + s.pick([k for k in ("owl", "badger", "donkey", "goose", "heron") if k not in s["kinds"]])))
    s.par()
    s.say("The {b.kind} was off like an arrow. {h} walked, step by step.", "The {b.kind} was gone in a cloud of dust, and {h} set off slowly.")
    why = int(s.random() * 5)
    if why == 0:
        s.say("After a while the {b.kind} looked back. Nobody was there. \"I have time for a little nap,\" {b.he} thought and lay down [in the shade|in the grass].")
        s.say("{h} did not sleep. {^h.he} went past on quiet feet, on and on.")
        topic = "patient"
    elif why == 1:
        s.say("But the {b.kind} was so proud that {b.he} stopped at every puddle to look at {b.himself}.")
        s.say("{h} looked only at the {path} in front of {h.him}.")
        topic = "modest"
    elif why == 2:
        s.say("But the {b.kind} ran so fast that {b.he} did not see the sign. {^b.he} ran left where one had to go right.")
        s.say("{h} was slow enough to read it.")
        topic = "careful"
    elif why == 3:
        s.say("Halfway the {b.kind} fell into a ditch and could not get out. \"Help!\" {b.he} called. {h} came by and stopped. {^h.he} held out a long branch.")
        s.say('"Why did you help me?" asked the {b.kind}. "You could have won." "Because you needed help," said {h}.')
        topic = "help"
    else:
        s.say("On the way there were sweet {food}s in the grass, and the {b.kind} stopped to eat. {^b.he} ate one, and another, and another, until {b.he} could hardly walk.")
        s.say("{h} was hungry, too, but {h.he} went on.")
        topic = "greedy"
    s.par()
    if why == 3:
        s.say("So they went the rest of the way together and arrived side by side. Everybody cheered.")
        s.say("After that the {b.kind} never laughed at anyone again.")
    else:
        s.say("When the {b.kind} came to {spot2} at last, {h} was already sitting there, eating a {food2}.", "When the {b.kind} arrived, out of breath, everybody was already cheering for {h}.")
        s.say('"How is that possible?" cried the {b.kind}. "[One step after the other|I just did not stop]," said {h}.' if why in (0, 4) else '"How is that possible?" cried the {b.kind}. {h} only smiled.')
        s.maybe(0.6, "The {b.kind} was ashamed. \"You have won,\" {b.he} said and shook {h.s} foot.", "From then on the {b.kind} did not boast any more, or at least not so loudly.")
    s["adult"] = Who("the {b.kind}", fast, "it")
    ending(s, topic, ['"[Tomorrow again|And now back]?" asked {h}. The {b.kind} only groaned.'])


def surprise(s):
    friend(s)
    opening(s)
    friends(s)
    s.par()
    s.say("It was {h.s} birthday, but nobody seemed to remember.", "{h} woke up early, for it was {h.his} birthday.")
    s.say('"Good morning," said {h} to {adult}. "Do you know what day it is?" "{day}," said {adult} and [went on reading|hurried away].'.replace("{day}", s.pick(["Monday", "Tuesday", "Friday", "Washing day", "A day like any other"])))
    s.say("Then {h} went to {f}. \"[I have no time today|Not now],\" said {f} and hid something behind {f.his} back.")
    s.say("Near {spot2} {h} met {others}, but as soon as they saw {h.him}, they stopped talking.".replace("{others}", s.pick(["the neighbours", "some friends", "the others"])))
    sad(s)
    s.say('"[Everybody has forgotten me|Nobody likes me any more]," {h.he} thought.')
    s.par()
    s.say("{h} went to {spot3} and sat there until it got dark.", "All afternoon {h} walked around near {spot3}, all alone.")
    s.say("When {h.he} came home, [all the lights were out|the house was dark and quiet|no light was on]. {h} opened the door.")
    s.say('"Surprise!" cried many voices at once. The lights went on, and everybody was there.')
    s.say("On the table stood a cake with {n} candles.".replace("{n}", s.pick(["five", "six", "seven", "eight"])), "There were {colour} paper lanterns everywhere, and a big cake.".replace("{colour}", s.pick(["red", "yellow", "blue", "green"])))
    s.say('"We have been working all day," said {f}. "It was so hard not to tell you!"', "{f} gave {h.him} what {f.he} had hidden behind {f.his} back. It was {gift}.".replace("{gift}", s.pick(["a " + g for g in GIFTS])))
    glad(s)
    s.say("They sang, they played {game}, and they ate until nobody could eat any more.")
    ending(s, "friend", ['"And next year," said {h}, "I will also forget my birthday. Then it is twice as nice."', '"Did you really think that we had forgotten you?" asked {adult}. "Only a little bit," said {h}.'])


def promise(s):
    friend(s)
    opening(s)
    friends(s)
    s.par()
    job = s.pick([("water the flowers", "flowers", "hung their heads and were almost dry"), ("feed the chickens", "chickens", "were so hungry that they cackled loudly"),
                  ("feed the fish", "fish", "swam round and round and looked very hungry"), ("close the gate", "sheep", "had all run away and were standing in the cabbage"),
                  ("bring in the washing", "shirts", "were wet through from the rain"), ("look after the fire", "pots", "were cold, and so was the whole house"),
                  ("take the cake out of the oven", "cake", "was as black as coal"), ("pick the cherries before the birds come", "cherries", "were almost all gone")])
    s["job"], s["them"], s["state"] = job
    oneday(s)
    s.say("{oneday}, {adult} had to go away. \"Will you {job}?\" {adult.he} asked. \"I promise,\" said {h}.", '{oneday}, {f} had to go on a trip. "Will you {job} for me?" {f.he} asked. "Of course," said {h}. "I promise."')
    s.say("But then the others came and wanted to play {game}. \"[Only for a moment|I can do it later],\" thought {h} and ran after them.")
    s.say("The sun went across the sky, and {h} forgot [the time|everything].", "One game followed the other, and {h} did not think of anything else.")
    s.par()
    s.say("In the evening {h} suddenly stopped. {^h.his} promise! {^h.he} ran back as fast as {h.he} could.", 'Then {h} heard the clock strike six. "Oh no, my promise!" {h.he} cried.')
    s.say("The {them} {state}.")
    sad(s)
    s.say('"I will make it good again," said {h} and [went to work at once|rolled up {h.his} sleeves].' if is_child(s["h"]) else '"I will make it good again," said {h} and went to work at once.')
    s.maybe(0.6, "{^h.he} worked until the moon came up.", "The others came, too, and helped {h.him}.", "It took the whole evening.")
    s.par()
    s.say("When {h} was asked how it had gone, {h.he} told the truth, although it was hard.")
    s.say('"[Thank you for being honest|I also forgot something once]," was the answer. "And next time?" "Next time first the work and then the game," said {h}.')
    ending(s, "careful")


def too_small(s):
    h = s["h"]
    small = s.pick(["mouse", "ant", "snail", "sparrow", "bee", "hedgehog", "frog", "kitten", "puppy", "lamb"])
    s["h"] = named(s, small)
    s["hero_phrase"] = s.pick(["tiny", "very small", "little"]) + " " + small
    opening(s)
    big = s.some([k for k in ("bear", "cow", "horse", "donkey", "elephant", "deer", "goose", "goat", "badger") if k not in s["kinds"]], 2)
    s["b1"], s["b2"] = stranger(s, big[0]), stranger(s, big[1])
    s.par()
    s.say("{h} was the smallest of all. When the others worked, {h.he} wanted to help.", "All the others were bigger than {h}.")
    s.say('"You are too small," said the {b1.kind}, who was carrying wood. "You are in the way," said the {b2.kind}, who was pulling a cart.')
    s.say('"One day I will show you," {h.he} thought, but {h.he} went away and was sad.', "So {h} sat down near {spot2} and felt even smaller.")
    s.par()
    oneday(s)
    what = int(s.random() * 4)
    if what == 0:
        s.say("{oneday}, the key of the store room fell through a gap in the floor. Inside was all the food for the winter, and nobody could open the door.")
        s.say("The {b1.kind} pulled at the boards, and the {b2.kind} kicked the door, but nothing helped.")
        s.say('"Let me try," said {h}. {^h.he} slipped through the gap, found the key in the dust and pushed it up.')
    elif what == 1:
        s.say("{oneday}, the {b1.kind} got a thorn in {b1.his} foot. {^b1.he} roared with pain and could not walk.")
        s.say("The {b2.kind} tried to pull it out, but {b2.his} feet were much too big.")
        s.say('"Hold still," said {h}. With one small, careful pull the thorn was out.')
    elif what == 2:
        s.say("{oneday}, the {b2.kind} was caught in a hunter's net. The more {b2.he} pulled, the tighter it got.")
        s.say("The {b1.kind} ran up and down and did not know what to do.")
        s.say("{h} found the one loose thread, pulled at it and loosened one knot after another until the net fell apart.")
    else:
        s.say("{oneday}, there was a strange noise in the wall, and nobody could find out what it was. The {b1.kind} and the {b2.kind} were afraid.")
        s.say("{h} was small enough to crawl in. It was only a {n} who had lost the way out, and {h} showed it the way.".replace("{n}", s.pick(["young bat", "little cricket", "baby mouse", "lost bee"])))
    s.par()
    s.say('"Without you we would have been lost," said the {b1.kind}.', '"You are small," said the {b1.kind}, "but what you do is big."', 'The {b1.kind} bowed down to {h}. "I was wrong," {b1.he} said.')
    glad(s)
    s.say("From that day on nobody said that {h.he} was too small.", "That evening {h} was allowed to sit on the {b2.kind}'s back and see the whole world from above.")
    s["adult"] = Who("the " + big[0], big[0], "it")
    ending(s, "self" if s.chance(0.5) else "help", ['"Can I carry wood now, too?" asked {h}. "Of course," said the {b1.kind} and gave {h.him} a very small twig.'])


def lazy_and_winter(s):
    friend(s)
    s["season"] = "summer"
    s["signs"] = s.pick(["The sun was hot and the sky was blue", "The days were long and warm", "Bees were humming in the flowers"])
    opening(s)
    friends(s)
    s.par()
    stores = s.pick(["nuts", "corn", "wood", "apples", "hay", "potatoes", "berries"])
    s["stores"] = stores
    s.say("All summer long {f} collected {stores} for the winter. {h} lay in the grass and [sang|looked at the clouds|slept].")
    s.say('"Come and help me," said {f}. "The winter will be long." "[The winter is far away|Tomorrow, maybe|It is too hot to work]," said {h}.')
    s.maybe(0.6, "In autumn, when the leaves were falling, {f} asked again. \"Soon,\" said {h} and yawned.")
    s.par()
    s.say("Then the first snow fell. {h} looked into {h.his} cupboard. There was nothing in it but a spider.", "Then winter came over night. {h} was cold and hungry, and there was nothing left to eat.")
    s.say("{h} knocked at {f.s} door. {^h.he} was ashamed. \"[I should have listened to you|You were right],\" {h.he} said.")
    way = int(s.random() * 3)
    if way == 0:
        s.say('"Come in," said {f}. "There is enough for two. But next summer you will help me."')
    elif way == 1:
        s.say('"What did you do all summer?" asked {f}. "I made songs," said {h}. "Then come in and sing," said {f}. "The winter evenings are long, and I cannot sing at all."')
    else:
        s.say("{f} thought for a moment. Then {f.he} opened the door wide. \"Nobody has to be cold near my house,\" {f.he} said.")
    s.say("So they spent the winter together, [by the warm stove|with soup and stories], while the snow was falling outside.")
    s.par()
    s.say("And the next summer {h} was the first to get up and collect {stores}.", "When spring came, {h} planted a whole field, all by {h.himself}.", "The next summer they collected {stores} together, and they sang while they were working.")
    ending(s, "share" if way == 2 else "work")


def full_house(s):
    """One after another asks for shelter."""
    hero = s["h"]
    s["weather"] = "rainy"
    s["dish"] = s.pick(["tomato soup", "pumpkin soup", "mushroom soup", "noodle soup", "carrot stew", "vegetable stew"])
    opening(s)
    s.par()
    s["storm"] = s.pick(["Outside, a great storm came up.", "It began to rain, and it did not stop.", "Outside, the snow fell thicker and thicker.",
                         "Thunder rolled, and the rain came down in sheets.", "The wind howled around the house."])
    s.say("One evening {h} was sitting [by the fire|at the table] with a bowl of {dish}. {storm}")
    s["sound"] = s.pick(["Knock, knock", "Tap, tap, tap", "Bang, bang"])
    order = s.some([k for k in ("mouse", "rabbit", "hedgehog", "duck", "hen", "cat", "dog", "goose", "fox", "sheep", "goat", "squirrel", "pig") if k not in s["kinds"]], 3)
    big = s.pick([k for k in ("bear", "donkey", "cow", "horse", "elephant") if k not in s["kinds"]])
    for i, k in enumerate(order + [big]):
        s["g%d" % i] = stranger(s, k)
    s.say("{sound}! It was {g0.a}. \"I am so wet and cold. May I come in?\" \"[Of course|Come in],\" said {h}.")
    s.par()
    s.say("A little later: {sound}! It was {g1.a}. \"Is there room for me?\" \"If we move closer together,\" said {h}.")
    s.say("Then came {g2.a}. \"Only a small corner, please!\" So they moved even closer together.")
    s.say("At last there was a very heavy knock. It was {g3.a}! \"[You are too big|There is no more room]!\" cried the others.")
    s.par()
    end = int(s.random() * 3)
    if end == 0:
        s.say('"If we all breathe in, it will work," said {h}. They all breathed in, and {g3} came in. Then they all breathed out, and the walls went creak.')
        s.say("Nobody could move, but nobody was cold, either.")
    elif end == 1:
        s.say('"I cannot come in," said {g3}, "but I can do something else." {^g3.he} lay down in front of the door, and the cold wind could not get in any more.')
        s.say("{h} covered {g3.him} with the biggest blanket in the house.")
    else:
        s.say("They pushed and they pulled, and crash, the roof fell down! They all looked up at the sky. The storm was over, and the stars were shining.")
        s.say('"It does not matter," said {g3}. "Tomorrow we will build a bigger house, all together." And so they did.')
    s.say("They told stories until, one after another, they fell asleep.", "{h} divided the {dish} into five small bowls, and it was enough." if end != 2 else "In the morning they ate {dish} together.")
    ending(s, "share", ['In the middle of the night a thin voice said: "{sound}!" It was only {g0}, who was talking in {g0.his} sleep.'])


def big_work(s):
    """Something too big for one is built together; each gives what they can."""
    thing, need = s.pick([("bridge", "The old bridge had been washed away by the river"), ("house", "The storm had blown down {h.s} house"), ("boat", "{h} wanted to see what was behind the big water"),
                          ("tree house", "{h} wanted to live high up, where one can see everything"), ("snow castle", "{h} wanted to build the biggest snow castle in the world"),
                          ("swing", "There was nothing to play with near {spot2}"), ("dam", "The stream was almost dry"), ("stage", "{h} wanted to put on a play"),
                          ("stone wall", "The garden was full of holes where the goats came in"), ("raft", "The way to the other bank was very long")])
    s["t"] = Thing(thing)
    s["need"] = need
    opening(s)
    s.par()
    oneday(s)
    s.say("{^need}. \"I will build {t.a},\" said {h}.")
    s.say("{h} began all alone. {^h.he} carried and pushed and hammered until {h.his} arms hurt, but in the evening there was hardly anything to see.",
          "But it was harder than {h} had thought. What {h.he} built in the morning fell down in the afternoon.")
    sad(s)
    s.par()
    asks = s.some([k for k in s["place"].helpers if k not in s["kinds"]], 3)
    for i, k in enumerate(asks):
        s["a%d" % i] = stranger(s, k)
    can = {"strong": "carry the heavy things", "dig": "dig the holes", "fly": "carry the ropes up", "gnaw": "cut the wood", "swim": "bring things across the water",
           "climb": "tie the knots high up", "sew": "weave the ropes", "small": "crawl into the narrow corners", "wise": "make a plan", "smell": "find the best wood",
           "fast": "run for what is missing", "tall": "hold up the beams", "night": "watch over it at night", "light": "give light in the evening", "wool": "keep everyone warm",
           "build": "lay one piece on the other", "jump": "stamp the earth down"}
    done = set()
    for i in range(3):
        left = [x for x in s["a%d" % i].skills if x not in done] or [x for x in can if x not in done]
        skill = s.pick(left)
        done.add(skill)
        s["can%d" % i] = can[skill]
    s.say('"I can {can0}," said {a0.a}. "And I can {can1}," said {a1.a}. "I am only a small {a2.kind}, but I can {can2}."' if "small" in s["a2"].skills else
          '"I can {can0}," said {a0.a}. "And I can {can1}," said {a1.a}. "I can {can2}," said {a2.a}.')
    s.say('"And I," said {h}, "can [cook for everyone|sing while we work|do the rest]."')
    s.maybe(0.4, "At first everybody shouted at the same time, and things got mixed up. Then they took turns, and it went better.",
            "On the second day it rained, but nobody went home.")
    s.say("After three days {t.the} was ready.", "In the evening of the third day they put the last piece in its place.", "They worked for a week, and then it was done.")
    s.par()
    s.say("It was a little crooked, but it was the most beautiful {t.bare} that {h} had ever seen.", "It was not perfect, but it held.", "Everybody stood in front of it and was proud.")
    glad(s)
    ending(s, "help", ['"Whose {t} is it now?" asked {a2}. "Ours," said {h}.', '"What shall we build tomorrow?" asked {a0}. The others groaned and fell into the grass.'])


PLOTS = [(sharing, 3), (broken_and_truth, 2), (new_one, 3), (quarrel, 3), (boast_and_race, 2), (surprise, 2), (promise, 2), (too_small, 2), (lazy_and_winter, 1),
         (full_house, 2), (big_work, 3)]
