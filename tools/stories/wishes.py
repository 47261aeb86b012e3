"""wishes.py - plots of wonder and of the self: wishes, magic, fear, learning, growing, night, mysteries, tricks and jokes."""
from beats import afraid, ending, friend, friends, glad, is_child, lesson, meet, named, oneday, opening, rest, sad, stranger, treasure
from text import Thing, Who
from words import ANIMALS, COLOURS, DISHES, FOODS, JOBS, SEEDS, SKILLS, SPEAKING


def seed_and_patience(s):
    s["plant"] = s.pick(SEEDS)
    s["season"], s["signs"] = "spring", "The snow had melted and the first flowers were out"
    opening(s)
    s.par()
    oneday(s)
    s.say("{oneday}, {h} got a {plant} seed from {adult}. It was as small as a [crumb|drop of water|button].", "{oneday}, {h} found a {plant} seed near {spot2}.")
    s.say("{h} made a hole in the earth near {spot3}, put the seed inside and gave it some water.")
    s.say("Then {h.he} sat down and waited. Nothing happened.", "{h} waited the whole afternoon, but nothing happened.")
    s.par()
    s.say('The next day there was still nothing to see. "Why does it not grow?" asked {h}. "[It is growing where you cannot see it|Give it time|It is still asleep]," said {adult}.')
    wrong = int(s.random() * 4)
    if wrong == 0:
        s.say("{h} gave it so much water that there was a puddle. \"Not so much!\" cried {adult}. \"It cannot swim.\"")
    elif wrong == 1:
        s.say("{h} wanted to dig it up to see how far it was. \"If you wake it, it will not grow,\" said {adult}. So {h} left it alone, although it was hard.")
    elif wrong == 2:
        s.say("{h} sang a song for it every evening, because {h.he} thought that it was bored in the dark.")
    else:
        s.say("One morning a hungry {bird} sat there. \"Please do not eat my seed,\" said {h} and gave it some bread crumbs instead.".replace("{bird}", s.pick(["crow", "sparrow", "hen", "magpie"])))
    s.say("A week went by, and then another one.", "Days went by. It rained, and the sun shone again.")
    s.par()
    s.say("And then, one morning, there was a tiny green tip. \"It is there!\" cried {h} so loudly that everybody woke up.")
    danger = int(s.random() * 3)
    if danger == 0:
        s.say("When the storm came, {h} held an umbrella over it all night long." if is_child(s["h"]) else "When the storm came, {h} stood in front of it all night long.")
    elif danger == 1:
        s.say("A snail wanted to eat it, but {h} carried the snail to a better place with more leaves.")
    else:
        s.say("Every day it was a little bigger, and {h} measured it with a stick.")
    s.say("In summer it was as tall as {h}, and in autumn there {fruit}.".replace("{fruit}", {
        "sunflower": "was a flower as big as a plate", "pumpkin": "was a pumpkin as big as a cart", "tulip": "was a whole row of them"}.get(s["plant"], "was more than {h} could carry")))
    s.say("{h} kept one seed for the next year and gave the rest away.", '"May I have a seed, too?" asked the neighbours, one after another, and {h} had enough for all.')
    ending(s, "patient", ['"And what shall we do now?" asked {adult}. "Wait," said {h}. "I am good at that now."'])


def afraid_of(s):
    what, looks, truth = s.pick([
        ("the dark", "In the corner stood a big black man with one arm", "It was only {h.s} coat on a hook"),
        ("the dark", "Two eyes were shining under the bed", "It was only the cat, who could not sleep either"),
        ("thunder", "Boom! The whole house shook", "When {h} counted, there were more and more numbers between the light and the noise, and the storm moved away"),
        ("the deep water", "The water was dark, and nobody could see the ground", "It carried {h.him}, as if it had soft hands"),
        ("the big dog of the {job}", "The dog stood in the middle of the road and showed its teeth", "It only wanted somebody to throw its stick"),
        ("the old house at the end of the road", "A window opened all by itself, with a long creak", "An old woman looked out. She was very small, and she was glad to have a visitor"),
        ("the stage", "A hundred faces were looking at {h.him}", "In the first row sat {f}, who was smiling"),
        ("the forest", "Something was cracking in the bushes", "A little deer stepped out and looked at {h.him}, and it was even more afraid than {h.he} was"),
        ("the cellar", "Something was knocking down there, again and again", "It was only a drop that fell from a pipe into a bucket"),
        ("high places", "The ground was far, far below", "From up there {h.he} could see the whole world, and it was beautiful"),
    ])
    friend(s)
    s["job"] = s.pick(JOBS)
    s["fear"], s["looks"], s["truth"] = what, looks, truth
    opening(s)
    friends(s)
    s.say("{h} was not afraid of [spiders or mice|rain or wind|bees or worms], but {h.he} was afraid of {fear}.", "There was only one thing {h} was afraid of, and that was {fear}.")
    s.par()
    oneday(s)
    reason = {"the dark": "the lamp went out", "thunder": "a great storm came up", "the deep water": "all the others were swimming, and {f} called: \"Come in!\"",
              "the stage": "{h} had to sing in front of everybody", "the forest": "{h} had to take a basket through the forest", "the cellar": "{adult} asked for some potatoes from the cellar",
              "high places": "{f} was sitting on top of the tower and called: \"Come up!\""}.get(what, "{h} had to go that way, because there was no other" if "dog" in what else "{h.s} ball flew over the wall")
    s["reason"] = reason
    s.say("{oneday}, {reason}." if not reason.endswith('"') else "{oneday}, {reason}")
    s.say("{^looks}.")
    afraid(s)
    s.par()
    way = int(s.random() * 4)
    if way == 0 and what != "the deep water" and what != "high places":
        s.say('"I will hold your hand," said {f}. Together they went on, one step, and then another one.' if what not in ("the stage",) else '"Look only at me," {f} had said. So {h} looked only at {f}.')
    elif way == 1:
        s.say("{h} remembered what {adult} had told {h.him}: \"When you are afraid, breathe in and count to ten.\" So {h} breathed in and counted to ten.")
    elif way == 2:
        s.say("{h} began to sing, very softly at first and then louder, for whoever sings is not alone.")
    else:
        s.say('"If I run away now," thought {h}, "I will always run away." {^h.he} took one step, and then another one.')
    s.say("{^truth}.", "And then {h} saw it. {^truth}." if truth.startswith("It") else "{^truth}.")
    s.say("{h} had to laugh.", '"And that was all?" said {h}.', "All at once the fear was gone, or at least it was very small.")
    glad(s)
    s.par()
    s.say('"Were you afraid?" asked {f}. "Yes," said {h}, "but I did it all the same."', '"You are brave," said {f}. "No," said {h}. "I was afraid the whole time." "That is what brave means," said {f}.')
    ending(s, "brave", ['"I am only afraid of one thing now," said {h}. "Of what?" asked {adult}. "Of {dish}," said {h}, and they both laughed.'])


def practice(s):
    s["skill"] = s.pick(SKILLS)
    friend(s)
    opening(s)
    s.par()
    s.say("{h} wanted to learn to {skill}.", "There was something that {h} could not do: {h.he} could not {skill}.", "{f} could {skill}, and {h} wanted to be able to do it, too.")
    oneday(s)
    s.say("{oneday}, {h} tried it for the first time. It went [wrong|very badly], and everyone who saw it laughed.", "{oneday}, {h} tried it. The first time {h.he} fell on {h.his} nose." if s["skill"] in
          ("ride a bicycle", "skate", "climb trees", "walk on stilts", "do a handstand", "ski", "jump rope", "dance") else "{oneday}, {h} tried it, but it was much harder than it looked.")
    s.say('"I will never learn it!" cried {h}.', '"It is no use," said {h}. "I give up."', "{h} was so angry that {h.he} stamped {h.his} foot.")
    s.par()
    teacher = int(s.random() * 4)
    if teacher == 0:
        s.say('"How often did you fall before you could walk?" asked {adult}. {h} did not know. "A thousand times," said {adult}, "and you always got up again."')
    elif teacher == 1:
        s.say('"Do you want to know how I learned it?" asked {f}. "I did it wrong every day for a whole month, and then I did it right."')
    elif teacher == 2:
        s.say("Near {spot2} {h} watched a spider. The wind tore its web three times, and four times the spider made a new one. {h} thought about that for a long time.")
    else:
        s.say("{h} saw an ant that was carrying a crumb up the wall. It fell down, again and again, but it never stopped. At last it was on top.")
    s.say("So {h} tried again, every [morning|evening|day], when nobody was looking.", "From then on {h} practised every day, in the sun and in the rain.")
    s.say("On Monday it went badly. On Wednesday it went a little better. On Sunday {h} could almost do it.", "Sometimes it went better and sometimes worse, but {h} did not stop.")
    s.par()
    s.say("And then, one day, it worked! {h} could hardly believe it.", "One morning everything was suddenly easy, as if {h} had always been able to do it.")
    glad(s)
    use = int(s.random() * 3)
    if use == 0:
        s.say("At the big summer party {h} showed what {h.he} could do, and everybody clapped.")
    elif use == 1:
        s.say('A small child watched {h.him} with big eyes. "I will never learn that," it said. "Come," said {h}, "I will tell you about the first time I tried."')
    else:
        s.say('"Who taught you that?" asked {f}. "All my mistakes," said {h}.')
    ending(s, "patient")


def strange_noise(s):
    friend(s)
    noise, cause = s.pick([
        ("Tap, tap, tap", "a woodpecker who was looking for his breakfast in the wrong tree"), ("Rumble, rumble", "the belly of the bear, who had eaten too many plums"),
        ("Whooo, whooo", "the wind in an old bottle"), ("Scratch, scratch", "a hedgehog who had got stuck in a flower pot"), ("Drip, drop, drip", "a hole in the roof, and the rain was falling into a boot"),
        ("Snore, snore", "{adult}, who had fallen asleep behind the sofa with a book on the nose"), ("Click, clack", "two snails who were playing with marbles"),
        ("Squeak, squeak", "the old gate, which only wanted some oil"), ("Splash, splash", "a duck who was taking a bath in the rain barrel"), ("Bump, bump, bump", "an apple tree that was dropping its apples on the roof of the shed"),
        ("Crunch, crunch", "the donkey, who was eating the hat of the {job}"), ("Ding, dong", "a cat with a bell who was afraid of the same noise")])
    s["noise"], s["job"] = noise, s.pick(JOBS)
    s["cause"] = cause
    opening(s)
    friends(s)
    s.par()
    s.say("One night {h} woke up. {noise}! What was that?", "One evening, when it was already dark, there was a strange noise. {noise}!", "{h} could not sleep. Something outside went: {noise}!")
    afraid(s)
    guess = s.some(["a ghost", "a dragon", "a thief", "a giant", "a monster with three heads", "a wolf", "a pirate", "a witch"], 2)
    s["guess"], s["guess2"] = guess
    s.say('"[Maybe|Perhaps] it is {guess}," {h} thought and pulled the blanket over {h.his} head.', "{h} went to wake {f}. \"It is {guess},\" {h} whispered. \"Or {guess2},\" whispered {f}.")
    s.say("But the noise did not stop. {noise}!")
    s.par()
    s.say("At last {h} took {tool} and went out on tiptoe.".replace("{tool}", s.pick(["a lantern", "a big wooden spoon", "a pot lid", "a broom", "an umbrella"])),
          "{f} went first, and {h} held on to {f.his} [sleeve|tail].".replace("[sleeve|tail]", "sleeve" if is_child(s["f"]) else "tail") if s["f"].kind not in ("frog", "goose") else "{f} went first, and {h} came after.")
    s.say("They went past {spot}, past {spot2}, closer and closer." if s.chance(0.5) else "The noise came from {spot2}. Step by step it got louder.")
    s.say('"Who is there?" called {h} with a shaky voice.', '"Come out!" called {h}, much louder than {h.he} had wanted to.')
    s.say("And what was it? It was {cause}!")
    s.say("{h} laughed so much that {h.he} had to sit down.", "What a relief! {h} began to laugh and could not stop.", '"And I was afraid of that!" said {h}.')
    s.par()
    s.maybe(0.6, 'In the morning {h} told everyone. "So it was not {guess}?" they asked. "No," said {h}, "but it was almost as loud."',
            "After that they drank warm milk together and slept until noon.")
    ending(s, "brave", ["And when something goes bump in the night now, {h} only turns over and says: \"Good night, {guess}.\""])


def cannot_sleep(s):
    opening(s)
    s.par()
    s.say("It was late, but {h} could not sleep.", "The moon was up, and everyone was asleep but {h}.", '"I am not tired at all," said {h} when it was time for bed.')
    ideas = s.some(["counted sheep, but at number seven one sheep stopped and did not want to jump", "drank some warm milk, but then {h.he} had to get up again", "turned the pillow around, but the other side was just as warm",
                    "told {h.himself} a story, but it was so exciting that {h.he} had to know the end", "listened to the clock, but the clock only said tick and tock", "closed one eye, but the other one stayed open",
                    "sang a song, but then the neighbours knocked on the wall", "looked for the brightest star, but there were two of them"], 3)
    for i, t in enumerate(ideas):
        s["i%d" % i] = t
    s.say("First {h.he} {i0}.")
    s.say("Then {h.he} {i1}.")
    s.maybe(0.6, "After that {h.he} {i2}.")
    s.par()
    end = int(s.random() * 5)
    k = s.pick([k for k in ("owl", "hedgehog", "cat", "firefly", "mouse", "spider", "frog") if k not in s["kinds"]])
    s["p"] = stranger(s, k)
    if end == 0:
        s.say('Then {h} saw {p.a} at the window. "Why are you awake?" asked {h}. "[The night is my day|I always work at night]," said {p}. "Shall I tell you what I see?"')
        s.say("And {p} told of the sleeping houses, of the white road and of the moon in the water, and in the middle of a sentence {h} fell asleep.")
    elif end == 1:
        s.say('{^adult} came in. "[What are you thinking about|What is in your head]?" {adult.he} asked. "About tomorrow," said {h}. "Then put it in this box," said {adult}, "and take it out in the morning."')
        s.say("{h} put tomorrow into the box and closed the lid. A minute later {h.he} was asleep.")
    elif end == 2:
        s.say("Then {h} went to see if the others were asleep. {^p} was asleep. {^adult} was asleep. Even the wind was asleep.")
        s.say('"Then I am the guard," said {h}, sat down in the big chair and was very proud. But a guard must not close his eyes, and {h} did. In the morning they found {h.him} there.')
    elif end == 3:
        s.say("{^h.his} blanket was cold, because it was alone, {h} thought. So {h.he} fetched {h.his} old teddy bear, {h.his} book, {h.his} ball and {h.his} hat, and put everything into the bed.")
        s.say("Now there was no more room for {h}. So {h.he} lay down on the soft rug and fell asleep at once.")
    else:
        s.say('"I wish it were morning," said {h}. "If you sleep, it will come at once," said {adult}. "How does it know?" asked {h}. But before {adult} could answer, {h.he} was asleep.')
    s.say("Outside, the moon went on across the sky.", "And the night was quiet near {spot}.", "In the morning {h} did not remember how it had happened.")
    if s.chance(0.4):
        s.say('"Did you sleep well?" asked {adult} in the morning. "I do not know," said {h}. "I was asleep."')


def wish_gone_wrong(s):
    wish, good, bad, undo = s.pick([
        ("that everything I touch tastes of honey", "It was wonderful. The table tasted of honey, and so did the door", "But the soup tasted of honey, too, and the water, and even the toothbrush", "plain bread"),
        ("to be as big as a house", "Suddenly {h.he} could look over all the trees", "But {h.he} did not fit through the door any more, and nobody dared to come near", "being small"),
        ("to be as small as an ant", "The grass was like a forest, and a crumb was like a whole cake", "But then it rained, and every drop was as big as {h.he} was", "{h.his} own size"),
        ("that it is summer all the time", "The sun shone every day, and the water was warm", "But the brook became thin, the flowers hung their heads, and there was no snow for a sledge", "a grey day with rain"),
        ("that nobody ever tells me what to do", "{h} stayed up all night and ate nothing but sweets", "But nobody told {h.him} a story, either, and nobody said good night", "a good night kiss"),
        ("to be able to fly", "Up and up {h.he} went, over the roofs and the river", "But {h.he} did not know how to come down again, and the wind was cold", "having both feet on the ground"),
        ("to be invisible", "{h} took a {food} from the table, and nobody saw it", "But when everybody played, nobody looked for {h.him}, and when {h.he} said something, the others ran away", "being seen"),
        ("that it is my birthday every day", "Every morning there was a cake and a present", "But after a week {h} could not look at cake any more, and nobody knew what to sing", "a day like any other"),
        ("a mountain of {food}s", "There they were, a whole mountain of them", "But {h} ate until {h.his} belly hurt, and the rest rolled down the street and blocked all the doors", "a single piece of bread"),
        ("that I always win", "{h} won at {game}, and at {game2}, and at everything else", "But soon nobody wanted to play any more", "losing once in a while")])
    s["wish"], s["good"], s["bad"], s["undo"] = wish, good, bad, undo
    giver = s.pick(["a golden fish", "a little old man with a green hat", "a star that had fallen into the grass", "a silver bird", "an old lamp with a voice", "a frog with a crown", "a tiny fairy"])
    s["giver"] = giver
    s["the_giver"] = "the " + giver.split(" ", 1)[1].split(" with ")[0].split(" that ")[0]
    opening(s)
    s.par()
    oneday(s)
    s.say("{oneday}, near {spot2}, {h} met {giver}. \"You have [a kind face|helped me]\", said {the_giver}, \"so you have one wish.\"".replace('me]\\"', 'me]').replace('", said', '," said'),
          "{oneday}, {h} found {giver} that was caught under a branch and set it free. \"Thank you,\" it said. \"You may make a wish.\"" if "man" not in giver else
          "{oneday}, {h} helped {giver} to carry a heavy sack. \"For that you may make a wish,\" he said.")
    s.say('{h} did not think for long. "I wish {wish}!" {h.he} said.', '"Then I wish {wish}," said {h} at once.' if not wish.startswith("to") else '"I have always wanted {wish}," said {h}.')
    s.say('"Are you sure?" asked {the_giver}. "Very sure," said {h}.', '"As you like," said {the_giver}, and there was a sound like a small bell.')
    s.par()
    s.say("{^good}.")
    s.say("{h} was [proud and happy|so happy that {h.he} laughed all day].", '"This is the best thing in the world," said {h}.')
    s.say("{^bad}.")
    sad(s)
    s.say("How {h.he} wished for {undo} now!", "Never had {h} thought that {h.he} would miss {undo} so much.")
    s.par()
    s.say("{h} went back to {spot2} and called. After a long time {the_giver} came.", "So {h} went to look for {the_giver}, all the way to {spot3}.")
    s.say('"Please take it back," said {h}. "[And what do you want instead|What do you want now]?" asked {the_giver}. "[Nothing|I want everything to be as it was]," said {h}.')
    s.say('"That is the cleverest wish I have heard in a hundred years," said {the_giver}.', "{^the_giver} laughed, and in a moment everything was as before.")
    s.say("That evening {h} enjoyed {undo} more than ever.", "And {h} was glad about {undo}.")
    ending(s, "greedy")


def moon_in_water(s):
    friend(s)
    opening(s)
    friends(s)
    s.par()
    s["water"] = s.pick(["pond", "well", "lake", "bucket", "puddle"])
    s.say("One night {h} looked into the {water} and got a fright. \"The moon has fallen into the water!\" {h.he} cried.", "One clear night {h} and {f} came past the {water}. There it was, round and white. \"The moon has fallen in!\" cried {h}.")
    s.say('"We must get it out," said {f}, "or it will get wet."', '"What shall we do without a moon?" said {f}. "It will always be dark."')
    tool = s.pick(["a net", "a bucket", "a long rope", "a spoon", "a fishing rod", "a hat"])
    s["tool"] = tool
    s.say("{h} fetched {tool}. They pulled and they scooped, but each time the moon broke into a thousand pieces, and a moment later it was whole again.")
    end = int(s.random() * 3)
    s.par()
    if end == 0:
        s.say("They leaned over farther and farther, and splash, they both fell in.")
        s.say("When they came up again, they lay on their backs and looked up. There was the moon, high in the sky. \"We did it!\" cried {h}. \"We threw it back up!\"")
    elif end == 1:
        s.say("Then {p.a} came by and looked at them for a while. \"Look up,\" said {p}. They looked up. There was the moon, where it always was.".replace("{p.a}", "an old owl").replace("{p}", "the owl"))
        s.say('"Oh," said {h}. "Then whose moon is in the water?" "That is the moon of the fish," said the owl.')
    else:
        s.say("At last a cloud came and covered the moon, and the water was black. \"Now it has sunk,\" said {f} sadly. They went home and could not sleep.")
        s.say("The next night it was there again, up in the sky and down in the water. \"There are two of them!\" said {h}. \"One for us and one for the frogs.\"")
    s.say("And they were both very [proud|pleased] and went home.", "They said good night to the moon, and to the other one, too.")
    ending(s, "friend", ['"Why are you so wet?" asked {adult}. "We have saved the moon," said {h}.' if end == 0 else '"Where were you so long?" asked {adult}. "We had to look after the moon," said {h}.'])


def trick(s):
    """A hungry one wants to eat the hero; a clever answer saves the day."""
    hero = s.pick(["mouse", "hen", "rabbit", "duck", "lamb", "goose", "frog", "squirrel", "snail", "pig", "kitten"])
    hunter = s.pick(["fox", "wolf", "hawk", "big cat", "weasel", "bear"]) if hero != "kitten" else "wolf"
    s["h"] = named(s, hero)
    s["hero_phrase"] = "little " + hero
    s["b"] = Who("the " + hunter, hunter, "he")
    opening(s)
    s.par()
    oneday(s)
    s.say("{oneday}, {h} met a {b.kind} near {spot2}. \"[Now I have you|You are just what I need for my dinner|I will eat you up],\" said {b} and licked {b.his} lips.")
    afraid(s)
    s.say("But {h} was clever.", "But {h} thought quickly.")
    t = int(s.random() * 6)
    s.par()
    if t == 0:
        s.say('"You may eat me," said {h}, "but I am so dirty. Let me wash first." {^b} agreed. {h} jumped into the water, swam to the other bank and waved.' if hero in ("duck", "goose", "frog") else
              '"You may eat me," said {h}, "but I taste best with salt. I will just fetch some." {^b} sat down and waited. And if {b.he} has not understood it yet, {b.he} is still waiting.')
    elif t == 1:
        s.say('"Is it true that you can sing so beautifully?" asked {h}. "I would like to hear it before I die." {^b} was flattered, closed {b.his} eyes, opened {b.his} mouth wide and sang.')
        s.say("When {b.he} opened {b.his} eyes again, {h} was gone, and the dogs of the farm were coming, because they had heard the song.")
    elif t == 2:
        s.say('"I am so thin," said {h}. "My brother is coming down the {path}, and he is much fatter." {^b} let {h} go and waited for the brother.')
        s.say("But the brother had no end of time, for there was no brother at all.")
    elif t == 3:
        s.say('"How lucky that you are here," said {h}. "Hold up this rock, or the sky will fall down. I will run for help." {^b} leaned against the rock with all {b.his} might.')
        s.say("{h} ran home and locked the door. {^b} stood there until the next morning, and the sky had not moved at all.")
    elif t == 4:
        s.say('"Gladly," said {h}, "but there is another {b.kind} down in the well who says that I belong to him." "Where is he?" cried {b} and looked down.')
        s.say("There was indeed somebody looking up angrily. {^b} jumped in to fight him, and it took {b.him} a long, wet time to get out again.")
    else:
        s.say('"Please, help yourself," said {h}. "But the doctor says that I have the spotted fever, and it is catching." {^b} took three steps back.')
        s.say('"I have just remembered that I have eaten already," {b.he} said and ran away as fast as {b.he} could.')
    s.say("{h} laughed all the way home.", "{h} told it to everyone near {spot3}, and everyone laughed.", '"That was close," said {h}, when {h.he} was at home again.')
    s.maybe(0.4, "After that {b} ate nothing but mushrooms for a week.", "{^b} never came to {spot2} again.")
    s.par()
    s["lesson"] = s.pick(["a good idea is better than long teeth", "one can be small and clever", "who thinks fast need not run fast", "one should not believe everything"])
    s.say("From that day on {h} knew that {lesson}.", '"You see," said {adult}, "{lesson}."', "And that shows that {lesson}.")


def speaking_thing(s):
    noun = s.pick(SPEAKING)
    worry, use = {
        "teapot": ("its spout was broken, and nobody drank tea from it any more", "{h} put earth into it and planted a violet, and it stood in the best place at the window"),
        "lantern": ("everybody used the new lamps, and it stood in the dark", "in a stormy night all the new lamps went out, and only the old lantern showed {h} the way home"),
        "clock": ("it was always five minutes late", "{h} hung it in the kitchen, where five more minutes of breakfast are just right"),
        "broom": ("it had lost half of its hair", "{h} used it as a tail for the biggest kite of all, and it flew"),
        "scarecrow": ("all the birds were afraid of it, and it was lonely", "{h} put seeds into its hat, and soon it had a sparrow on each hand"),
        "snowman": ("the spring was coming, and it did not want to go away", "{h} put its carrot into the earth, and when the first snow fell the next winter, they knew each other at once"),
        "boat": ("it had a hole and could not go to sea any more", "{h} turned it upside down, and now it was a house with the smell of the sea"),
        "bell": ("it had a crack, and its voice was hoarse", "when fog came, its strange voice was the only one that the fishermen knew, and all of them came home"),
        "chair": ("it had only three legs", "{h} leaned it against the apple tree, and it was the best place for reading in the whole garden"),
        "umbrella": ("it had a hole right in the middle", "{h} looked through the hole at the stars while it was raining all around"),
        "kettle": ("it could not whistle any more", "{h} took it along on a picnic, where nobody wanted to be woken up"),
        "wagon": ("one of its wheels was gone", "{h} made a shop out of it and sold lemonade, and everyone came"),
        "mirror": ("it had a crack, and everybody who looked in it saw two noses", "{h} took it to the fair, and people paid to laugh"),
        "coat": ("it was too small for everyone", "{h} laid it in a basket, and the cat had her kittens in it"),
        "ladder": ("some of its steps were missing", "{h} put it against the wall, and the beans climbed up on it"),
        "rocking horse": ("nobody had ridden it for years", "a small child came to visit and did not want to get down until evening"),
        "drum": ("its skin was torn", "{h} put a cushion in it, and it was the best bed that the dog had ever had"),
        "windmill": ("the wind had stopped, and it could not turn", "{h} and all the others blew together, and at that moment the wind came back"),
        "toy soldier": ("it did not want to fight, but to dance", "{h} put it on the music box, and it turned and turned"),
        "pencil": ("it had become so short that nobody could hold it", "{h} wrote the last line of a letter with it, and the last line was the most important one"),
    }.get(noun, ("nobody needed it any more", "{h} took it home, and it got the best place in the house"))
    s["x"] = Thing(s.pick(["old", "little", "rusty", "grey", "dusty"]) + " " + noun if noun not in ("snowman", "scarecrow") else noun, bare=noun)
    s["worry"], s["use"] = worry, use
    opening(s)
    s.par()
    oneday(s)
    s.say("{oneday}, {h} heard somebody [sigh|sob] near {spot2}. But there was nobody there, only {x.a}.", "{oneday}, {h} found {x.a} near {spot2} and sat down beside it. \"Ouch!\" said the {x.bare}.",
          "Near {spot2} stood {x.a}. {oneday}, it said to {h}: \"Good morning.\"")
    s.say('"You can talk!" said {h}. "[Of course|Only when somebody listens|I have always been able to]," said the {x.bare}.', '"Was that you?" asked {h}. "Who else?" said the {x.bare}.')
    s.say('"Why are you so sad?" asked {h}.')
    s.say("The {x.bare} told {h.him} everything: {worry}.", "Then it told {h.him} that {worry}.")
    s.par()
    s.say('"I will think of something," said {h}. {^h.he} thought about it the whole [night|afternoon].', '"That cannot be the end," said {h}.', "{h} had once felt useless {h.himself}, and {h.he} knew how that was.")
    tried = s.random() < 0.5
    if tried:
        s.say("First {h} tried to repair it, but that did not work.", "First {h} asked the {job}, but the {job} only shook his head.".replace("{job}", s.pick(JOBS)))
    s.say("Then {h} had an idea. And so it came that {use}.")
    s.say('"I did not know that I could do that," said the {x.bare}.', '"[Nobody|No one] has ever been so kind to me," said the {x.bare}.', "If a {x.bare} could smile, it would have smiled then. And I think it did.")
    s.say("Every evening {h} came to talk to it.", "Since then it has told {h} a story every night.", "And when {h} is sad, the {x.bare} asks: \"Why are you so sad?\"")
    ending(s, "self")


def lost_in_fog(s):
    friend(s)
    opening(s)
    s.par()
    oneday(s)
    lost = s.pick(["a thick fog came up", "it began to snow so hard that {h} could not see {h.his} own feet", "it got dark earlier than {h} had thought", "{h} followed a butterfly farther and farther"])
    s["lost"] = lost
    s.say("{oneday}, {h} went to {spot2} to {what}. But then {lost}.".replace("{what}", s.pick(["pick berries", "look for mushrooms", "collect wood", "visit {f}", "get some water"])))
    s.say("Soon {h} did not know any more where {h.he} was. Every tree looked like the one before.", "{h} turned left, then right, and then left again. {^h.he} was lost.")
    afraid(s)
    s.say('"Hello?" {h.he} called. Nobody answered.', "{^h.he} called for {adult}, but there was only silence.")
    s.par()
    way = int(s.random() * 6)
    if way == 0:
        s.say("Then {h} remembered what {adult} had said: \"Water always finds its way down to the people.\" {h} listened, heard a brook and followed it.")
    elif way == 1:
        s.say("Then, far away, {h} heard a bell. It was {adult}, who was ringing it again and again. {h} walked towards the sound, and it got louder and louder.")
    elif way == 2:
        s.say("Then {h} saw a small light. It was a firefly. \"Follow me,\" it said, \"but do not blink.\" And {h} followed the light through the dark.")
    elif way == 3:
        s.say("In the morning {h} had eaten a bun, and {h.he} had dropped crumbs all the way. Now a sparrow was eating them, one after another. {h} followed the sparrow, and the sparrow followed the crumbs, all the way home.")
    elif way == 4:
        s.say("{h} sat down under a tree and stayed where {h.he} was, as {h.he} had learned. {^h.he} sang, so as not to be afraid. And {f}, who was looking for {h.him}, heard the song.")
    else:
        s.say("The stars came out. {h} looked for the brightest one, the one that stood over {h.his} house every night, and went where it was shining.")
    s.say("At last {h.he} saw the lit window of {h.his} home.", "Before long {h} knew the way again. There was {spot}!")
    s.par()
    s.say("{^adult} was standing at the door and took {h.him} in {adult.his} arms.", '"There you are at last!" cried {adult}. "We were looking for you everywhere."')
    s.say("Then there was {dish}, and {h} told the whole story twice.", "{h} got a warm blanket and hot tea.")
    ending(s, "careful" if way not in (2, 3) else "brave", ['"And where have you been?" asked {adult}. "I do not know," said {h}. "That was the problem."'])


def food_thief(s):
    friend(s)
    opening(s)
    s.par()
    food = s.pick(FOODS)
    s["food"] = food
    s.say("{^h.his} {adult_word} had baked, and a whole plate of {food}s was standing at the window." if food in ("cookie", "pancake", "bun", "muffin", "pie", "cake", "biscuit", "honey bun", "cheese roll", "jam tart", "nut bar")
          else "Every morning {h} counted the {food}s in the basket near the door.")
    s.say("But in the morning one {food} was missing. And the next morning another one.", "But every night one {food} disappeared.")
    s.say('"Was it you?" {h} asked {f}. "No," said {f}, "but I will help you to find the thief."')
    s.par()
    s.say("That night they hid behind {spot2} and waited.", "They put flour on the ground and waited. In the morning there were small footprints in it, and they followed them to {spot2}.", "They tied a thread to the last {food} and waited until it moved.")
    thief = s.pick([k for k in ("mouse", "squirrel", "hedgehog", "fox", "badger", "crow", "dog", "cat") if k not in s["kinds"]])
    s["p"] = stranger(s, thief)
    s["p"].s = s["p"].name + "'s"
    why = int(s.random() * 5)
    s.say("And who was it? It was {p.a}!", "Then they saw the thief. It was {p.a}.")
    s.say('"[Stop, thief|Now we have you]!" cried {h}.', '"So it was you!" cried {h}.')
    if why == 0:
        s.say('{^p} began to cry. "I have four little ones at home," {p.he} said, "and they are so hungry." {h} was not angry any more.')
        s.say('"You should have asked," said {h}. "I would have given you some." And {h.he} packed a whole bag full.')
    elif why == 1:
        s.say('"Is that stealing?" asked {p}. "I thought they were standing there for everyone." {h} looked at {f}, and {f} looked at {h}, and then all three laughed.')
    elif why == 2:
        s.say('"I am sorry," said {p}. "I am new here, and I did not dare to knock." "Next time knock," said {h}. "Then you will get two."')
    elif why == 3:
        s.say('"I only wanted to bring them to my grandmother," said {p}. "She is old and cannot walk any more." So they all went to the grandmother together, with the rest of the {food}s.')
    else:
        s.say("{^p} was sound asleep, and {p.he} was walking in {p.his} sleep, with a {food} in {p.his} mouth. They led {p.him} home gently, and {p.he} never knew about it.")
    s.par()
    s.maybe(0.7, "Since then there is always one {food} more on the plate, for somebody who is hungry.", "The next day {p} came back and brought a bunch of flowers.", "And so {h} and {f} got a new friend.") if why != 4 else \
        s.say("Since then {h} puts a {food} in front of {p.his} door every evening, just to be sure.")
    ending(s, "share", ['"And which of them tasted best?" asked {f}. "The one that you gave me," said {p}.' if why != 4 else '"Shall we tell {p.him}?" asked {f}. "Better not," said {h}. "{^p.he} would not believe it."'])


def hide_and_seek(s):
    friend(s)
    opening(s)
    friends(s)
    third = s.pick([k for k in s["place"].helpers if k not in s["kinds"]])
    s["p"] = stranger(s, third)
    s.par()
    oneday(s)
    s.say("{oneday}, {h}, {f} and {p.a} played hide and seek near {spot2}. {h} had to count to {n}.".replace("{n}", s.pick(["ten", "twenty", "fifty"])))
    s.say('"[I am coming|Ready or not, here I come]!" called {h}. Nobody was to be seen.')
    s.say("{h} found {p} first. {^p.he} had hidden behind {hidden}, but {p.his} {part} was sticking out.".replace("{hidden}", s.pick(["a thin tree", "a small bush", "a bucket", "a flower"])).replace(
        "{part}", s.pick(["nose", "back", "head", "foot"])), '{^p} had hidden so badly that {h} found {p.him} at once. "You looked!" said {p}. "You are bigger than the tree," said {h}.' if "small" not in s["p"].skills else
          '{h} found {p} at once, because {p.he} could not stop giggling.')
    s.par()
    s.say("But {f} was nowhere. They looked near {spot}, near {spot3}, and even in the rain barrel.")
    s.say('"[Come out|You have won]!" they called. There was no answer. The sun was going down, and {h} began to worry.')
    end = int(s.random() * 5)
    if end == 0:
        s.say("Then they heard a soft snoring. {f} had fallen asleep in the hay, with a straw on {f.his} nose.")
    elif end == 1:
        s.say("Then {h} heard a laugh behind {h.him}. All the time {f} had been walking on tiptoe right behind {h.him}.")
    elif end == 2:
        s.say("At last they went to {f.s} home to tell the family. And there sat {f} at the table, eating {dish}. \"I was hungry,\" {f.he} said. \"Are you still playing?\"")
    elif end == 3:
        s.say("Then they heard a knocking. {f} had climbed into an old barrel, and the lid had got stuck. Together they pulled it off, and {f} was very glad to be found.")
    else:
        s.say("Then the scarecrow in the field sneezed. It was {f}, with a hat and an old coat, and nobody had known {f.him}.")
    s.say("They laughed until their bellies hurt.", '"You are the best at hiding," said {h}. "And you are the best at counting," said {f}.')
    ending(s, "friend", ['"Tomorrow I will hide," said {p}. "Behind something bigger," said {h}.', "And the next day they played it again, but this time with a bell around {f.s} neck."])


def different(s):
    """Somebody is unlike the others, and just that is needed."""
    odd, laugh, need = s.pick([
        ("had very long ears", "You look like two spoons", "One night {h} heard with {h.his} long ears what nobody else heard: far away the water was breaking through the dam. {^h.he} woke everybody up, and all were saved"),
        ("could not stop sneezing", "You will blow the house down", "When the big fire came close to the hay, {h} sneezed so hard that it went out"),
        ("was as white as snow in a family of brown ones", "You forgot your colour", "When the first snow came, the others could be seen from far away. Only {h} could run across the white field and fetch food for all"),
        ("had a very loud voice", "Not so loud", "When a little one was lost in the fog, {h} called so loudly that it heard {h.him} on the other side of the hill and came home"),
        ("was slower than all the others", "Are you asleep", "When the others ran past, only {h} saw the four-leaved clover, the lost ring of the {job} and the way out of the maze"),
        ("saw everything upside down", "You are the wrong way round", "When the sign had fallen over, {h} was the only one who could read it, and {h.he} led the others home"),
        ("had spots, and nobody else had spots", "You should wash", "When everybody was in costume at the party and nobody knew anyone, all of them knew {h}, and so nobody was lost"),
        ("was always asking questions", "Be quiet for once", "When a stranger wanted to sell them a magic stone, {h} asked so many questions that the stranger ran away with his false stone"),
        ("laughed at the wrong places", "That is not funny", "When all of them had been sad for a week because of the rain, {h} began to laugh about the rain, and one after another they had to laugh, too"),
        ("had big feet", "Here come the boats", "When deep snow had fallen, the others sank in up to their necks. {h} walked on top of it as if on skis and brought bread to all")])
    s["odd"], s["laugh"], s["need"] = odd, laugh, need
    s["job"] = s.pick(JOBS)
    opening(s)
    s.say("{h} {odd}.")
    s.par()
    s.say('"{laugh}!" said the others and laughed.', 'The others laughed at {h.him}. "{laugh}!" they called.')
    sad(s)
    s.say("{h} tried to be like the others, but it did not work.", "{^h.he} looked into the water and wished {h.he} were like everybody else.", "In the evening {h.he} asked {adult}: \"Why am I not like the others?\" \"[Wait and see|Because we have the others already],\" said {adult}.")
    s.par()
    s.say("{need}.")
    s.par()
    s.say("After that nobody laughed any more.", '"How good that you are as you are," said the others.', "Now all the others wanted to be like {h}.")
    glad(s)
    ending(s, "self", ['"{laugh}," said {adult} that evening, and {h} laughed most of all.'])


PLOTS = [(seed_and_patience, 2), (afraid_of, 4), (practice, 3), (strange_noise, 3), (cannot_sleep, 2), (wish_gone_wrong, 3), (moon_in_water, 1), (trick, 3),
         (speaking_thing, 3), (lost_in_fog, 3), (food_thief, 3), (hide_and_seek, 2), (different, 2)]
