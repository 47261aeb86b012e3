"""words.py - who and what there is in the world of the stories."""

GIRLS = """Mia Anna Lily Rosa Ella Nora Ida Clara Greta Hanna Lucy Maya Nina Olive Pearl Ruby Sara Tess Wilma Zoe Alma Bella Daisy
Edith Flora Ivy June Kira Lena Molly Nell Poppy Sofia Tilda Vera Willa Amina Leila Mei Yuki Priya Zara Carmen Ines Freya Astrid
Marta Paula Elsa Jenny Abby Beth Carla Dora Emma Fiona Gwen Heidi Isla Judy Kate Lotte Mona Nadia Olga Petra Rita Selma Tina Ursula
Vicky Wendy Xenia Yara Zelda Aisha Linh Sana Noor Anya""".split()
BOYS = """Tom Ben Max Leo Sam Finn Jack Otto Paul Emil Hugo Noah Oscar Peter Theo Will Anton Bruno Carl David Eli Felix George Henry
Ivan Jonas Karl Liam Milo Nils Oliver Pablo Ravi Simon Toby Victor Walter Kofi Omar Kenji Marco Luca Rolf Erik Mateo Jamal Arthur
Edwin Louis Rufus Adam Boris Colin Dylan Eric Frank Gabriel Harry Igor Jakob Kevin Lars Martin Nathan Olaf Patrick Quentin Robin Stefan
Theodor Urs Vincent Wilbur Xavier Yusuf Zack Tariq Hiro Diego Pavel""".split()
PETS_SHE = """Pippa Dot Honey Bramble Clover Fern Hazel Maple Minnie Nutmeg Penny Petal Plum Posy Pumpkin Rosie Tansy Tilly Tulip
Bluebell Cherry Cinnamon Coco Dapple Dolly Fluff Ginger Juniper Lulu Misty Mittens Mossy Peaches Pebble Sunny Velvet Willow
Biscuit Snowdrop Wren""".split()
PETS_HE = """Pip Bram Button Barley Acorn Basil Boris Bumble Chestnut Crumb Digby Fidget Flick Gus Hopper Jasper Nibbles Oakley Patch
Pepper Quill Rusty Sandy Scamp Smudge Snuffles Sorrel Spot Stubbs Thistle Timber Tumble Twig Wally Whisker Wiggles Ziggy Moss
Bert Hobnob""".split()

# ---- animals: kind -> (what they can do, the sound or way they talk, what they like to eat) ----

ANIMALS = {
    "rabbit": ("fast dig", "squeaked", "carrots"), "hare": ("fast", "called", "clover"), "mouse": ("small gnaw", "squeaked", "cheese"),
    "squirrel": ("climb", "chattered", "nuts"), "hedgehog": ("small smell", "mumbled", "apples"),
    "fox": ("fast smell", "said", "berries"), "badger": ("dig strong", "grumbled", "mushrooms"),
    "bear": ("strong", "rumbled", "honey"), "owl": ("fly night wise", "hooted", "berries"), "mole": ("dig", "mumbled", "roots"),
    "deer": ("fast", "said", "leaves"), "beaver": ("swim gnaw build", "said", "bark"), "otter": ("swim", "laughed", "fish"),
    "duck": ("swim", "quacked", "bread"), "frog": ("swim jump", "croaked", "flies"), "turtle": ("swim wise", "said slowly", "lettuce"),
    "swan": ("swim fly", "said", "water grass"), "heron": ("tall", "said", "fish"), "goose": ("swim", "honked", "corn"),
    "crow": ("fly", "cawed", "seeds"), "sparrow": ("fly small", "chirped", "crumbs"), "robin": ("fly small", "sang", "worms"),
    "magpie": ("fly", "chattered", "seeds"), "dog": ("smell fast", "barked", "bones"), "cat": ("climb night", "purred", "milk"),
    "pig": ("smell dig", "grunted", "apples"), "cow": ("strong", "said", "hay"), "horse": ("fast strong", "said", "oats"),
    "donkey": ("strong", "said", "hay"), "goat": ("climb", "bleated", "thistles"), "sheep": ("wool", "bleated", "grass"),
    "hen": ("wise", "clucked", "corn"), "snail": ("small", "whispered", "lettuce"), "bee": ("fly small", "buzzed", "honey"),
    "ant": ("small strong", "piped", "sugar"), "spider": ("sew", "whispered", "flies"), "firefly": ("light fly", "whispered", "dew"),
    "seal": ("swim", "said", "fish"), "crab": ("small dig", "clicked", "seaweed"), "gull": ("fly", "cried", "fish"),
    "dolphin": ("swim fast", "laughed", "fish"), "marmot": ("dig smell", "whistled", "herbs"), "eagle": ("fly", "said", "fish"),
    "butterfly": ("fly small", "whispered", "flowers"), "lamb": ("wool", "bleated", "grass"), "puppy": ("smell fast", "barked", "bones"),
    "kitten": ("climb night", "mewed", "milk"), "giraffe": ("tall", "said", "leaves"), "elephant": ("strong tall", "said", "peanuts"),
    "monkey": ("climb", "chattered", "bananas"), "parrot": ("fly", "said", "seeds"), "penguin": ("swim", "said", "fish"),
}

# ---- where stories happen ----


class Place:
    def __init__(self, where, spots, heroes, helpers, home, water, high, hole, path, big):
        self.where, self.spots, self.heroes, self.helpers, self.home = where, spots.split(", "), heroes.split(), helpers.split(), home
        self.water, self.high, self.hole, self.path, self.big = (x.split(", ") for x in (water, high, hole, path, big))


PLACES = [
    Place("forest", "the berry bushes, the old oak tree, the mossy stones, the clearing, the hollow log, the fern hill, the pine trees",
          "rabbit mouse squirrel hedgehog fox badger bear deer mole owl hare", "rabbit mouse squirrel hedgehog fox badger bear owl deer mole "
          "beaver crow robin spider firefly otter", "burrow|den|little house under the roots", "stream, brook, river", "oak tree, pine tree, beech tree",
          "rabbit hole, hollow log, crack in the rock", "forest path, narrow track, path between the trees", "log, fallen tree, rock"),
    Place("meadow", "the tall grass, the daisies, the old fence, the willow tree, the sunny bank, the clover patch",
          "mouse rabbit hare snail mole lamb hedgehog", "mouse rabbit hare mole crow sparrow bee spider butterfly goat ant firefly frog",
          "nest|burrow|little hole", "ditch, stream, brook", "willow tree, apple tree, fence post", "mole hill, hole in the wall, hole under the hedge",
          "path through the grass, little track, path along the hedge", "stone, branch, old gate"),
    Place("pond", "the reeds, the lily pads, the muddy bank, the flat stones, the little bridge, the willow roots",
          "duck frog turtle otter goose swan beaver mouse", "duck frog turtle otter goose swan beaver heron mouse sparrow firefly spider owl",
          "nest|home in the reeds|house by the water", "pond, deep pool, stream", "willow tree, alder tree, mill roof",
          "muddy hole, hollow stump, crack between the stones", "path around the pond, path through the reeds, bank", "stone, log, barrel"),
    Place("farm", "the red barn, the hen house, the vegetable garden, the orchard, the haystack, the gate, the stable",
          "girl boy pig hen lamb puppy kitten duck donkey goat", "dog cat pig cow horse donkey goat sheep hen duck mouse sparrow crow spider",
          "farmhouse|barn|stable", "pond, trough, mill stream", "barn roof, apple tree, hayloft", "drain, hole in the barn wall, gap under the floor",
          "lane, path to the fields, road to the market", "cart, milk can, sack of corn"),
    Place("village", "the market, the well, the baker's shop, the school, the stone bridge, the mill, the church, the village green",
          "girl boy girl boy cat dog", "dog cat crow sparrow horse donkey goat mouse duck owl", "house|cottage", "river, well, mill stream",
          "church roof, chestnut tree, chimney", "drain, gap in the wall, hole under the steps", "village street, lane, road to the bridge",
          "cart, barrel, stone"),
    Place("sea", "the beach, the harbour, the lighthouse, the dunes, the rock pools, the pier, the fishing boats",
          "girl boy seal crab gull penguin turtle", "seal crab gull dolphin turtle dog cat otter", "house by the sea|little home by the shore",
          "sea, rock pool, harbour", "lighthouse, mast, cliff", "crack in the rocks, hole in the sand, old pipe",
          "path through the dunes, path along the cliff, beach", "boat, barrel, rock"),
    Place("town", "the park, the library, the playground, the bakery, the station, the toy shop, the square, the fountain",
          "girl boy girl boy cat dog mouse", "dog cat crow sparrow mouse parrot owl", "house|flat on the third floor|yellow house", "fountain, pond in the park, canal",
          "lamp post, roof, plane tree", "drain, gap in the fence, hole under the stairs", "street, way through the park, road to the station",
          "bench, box, bin"),
    Place("mountain", "the hut, the waterfall, the high meadow, the pine trees, the goat path, the cave, the lookout",
          "girl boy goat marmot lamb bear eagle", "goat marmot eagle sheep bear owl fox dog deer", "hut|cottage on the hill|small home between the rocks",
          "stream, lake, waterfall pool", "cliff, pine tree, roof of the hut", "cave, marmot hole, crack in the rock",
          "goat path, steep path, path down the mountain", "rock, log, snow-covered branch"),
    Place("garden", "the rose bed, the shed, the cherry tree, the stone wall, the vegetable patch, the swing, the little pond",
          "girl boy mouse snail hedgehog cat robin mole", "cat mouse snail hedgehog robin bee spider mole frog butterfly ant sparrow firefly dog",
          "house|home at the end of the garden|little house", "little pond, water barrel, bird bath", "cherry tree, roof of the shed, pear tree",
          "mole hole, flower pot, gap in the wall", "garden path, stepping stones, path behind the shed", "flower pot, stone, bucket"),
    Place("zoo", "the ticket gate, the monkey house, the sand pit, the pool, the big tree, the kitchen, the fence",
          "penguin monkey elephant giraffe parrot seal", "penguin monkey elephant giraffe parrot seal mouse turtle bear",
          "cage|house|corner of the zoo", "pool, moat, bath", "big tree, roof of the kitchen, climbing pole", "drain, gap in the fence, pipe",
          "path between the cages, way to the gate, sandy path", "bucket, box, wheel"),
]

SEASONS = {
    "spring": ("spring", ["The snow had melted and the first flowers were out", "The birds were building their nests", "The trees had new green leaves",
                          "The air smelled of wet earth and blossoms", "Lambs were jumping in the fields"]),
    "summer": ("summer", ["The sun was hot and the sky was blue", "The days were long and warm", "Bees were humming in the flowers",
                          "The grass was dry and yellow", "Everyone was looking for shade"]),
    "autumn": ("autumn", ["The leaves were turning red and gold", "The apples were ripe", "The wind was blowing leaves across the ground",
                          "The mornings were foggy and cool", "Chestnuts were falling from the trees"]),
    "winter": ("winter", ["Snow lay on everything like a white blanket", "The water was frozen", "It was so cold that every breath made a little cloud",
                          "Icicles were hanging everywhere", "The ground was hard with frost"]),
}

WEATHER = {
    "sunny": ["The sun was shining", "It was a bright, clear day", "There was not a cloud in the sky"],
    "windy": ["The wind was strong", "It was a windy day", "The wind was pulling at everything that was not tied down"],
    "rainy": ["It was raining softly", "Rain was falling from a grey sky", "It had rained all night"],
    "foggy": ["Fog lay over everything", "It was so foggy that one could hardly see the next tree", "A thick mist hung in the air"],
    "cloudy": ["Grey clouds were moving across the sky", "The sky was cloudy", "The sun was hiding behind the clouds"],
}

COLOURS = "red blue green yellow purple orange white brown pink golden silver striped spotted".split()

# toys and things that somebody can own, lose, give: noun, plural
TREASURES = """ball|kite|doll|teddy bear|toy boat|wooden horse|drum|whistle|scarf|hat|cap|umbrella|lantern|basket|blanket|pillow|book|
picture book|bell|button|ring|marble|shell|feather|flute|music box|toy train|spinning top|bucket|balloon|ribbon|bracelet|necklace|
coat|backpack|key|cup|spoon|notebook|toy car|puppet|paper boat|pocket watch|magnifying glass|brush|little flag|wooden spoon|
toy duck|jump rope|paint box|compass|telescope|hammer|shovel|fishing rod|blue cape|crown|mask|tambourine|accordion|trumpet|pinwheel|
walking stick|straw hat|clay pot|purse|medal|chess piece|bird whistle|hand mirror|sleeping bag|lunch box|toy tractor|sailor cap|comb|
thimble|candle holder|feather pen|map|treasure chest|wooden sword|cuckoo clock|toy rabbit|star on a string|snow globe""".replace("\n", "").split("|")
PAIRS = "mittens|boots|gloves|socks|slippers|skates|glasses|shoes|crayons|marbles".split("|")
GIFTS = """jar of honey|basket of mushrooms|bag of raisins|box of chocolates|woollen blanket|wooden flute|bunch of roses|glass marble|
pair of socks|spinning top|jar of cherries|bowl of raspberries|seed cake|handkerchief|wooden spoon|toy sailor|clay bird|honey cake|apple pie|bunch of daisies|bunch of tulips|bag of nuts|basket of strawberries|warm scarf|painted stone|wooden boat|
little drum|picture of the sea|knitted hat|loaf of bread|pot of jam|basket of cherries|bag of plums|lemon cake|tin of biscuits|
flower crown|paper star|sun hat|bird house|soft pillow|carrot cake|jar of sweets|small lantern|silver bell|bag of walnuts""".replace("\n", "").split("|")
FOODS = """apple|pear|cookie|pancake|carrot|bun|sandwich|muffin|pie|plum|peach|sausage|cake|biscuit|potato|tomato|pumpkin|melon|
honey bun|corn cob|radish|cucumber|turnip|apricot|fig|orange|lemon bun|waffle|pretzel|doughnut|oat biscuit|raisin bun|dumpling|onion roll|
cheese roll|jam tart|nut bar|banana""".replace("\n", "").split("|")
DISHES = """tomato soup|pumpkin soup|apple cake|blueberry pie|pancakes|carrot stew|mushroom soup|noodle soup|cherry tart|potato salad|
fresh bread|porridge with honey|vegetable stew|rice pudding|plum dumplings|cinnamon rolls|cheese pie|nut bread|lemon cake|pear crumble""".replace("\n", "").split("|")
SEEDS = "sunflower|pumpkin|bean|tulip|apple|pea|tomato|strawberry|poppy|cherry|daisy|melon|rose|carrot".split("|")
SKILLS = """swim|whistle|ride a bicycle|skate|sing|dance|juggle|paint|bake bread|play the flute|play the drum|tie a knot|climb trees|read|
row a boat|knit|do a handstand|fly a kite|catch a ball|jump rope|write a letter|play the violin|ski|dive|count to a hundred|
make a fire|build a snowman|tell jokes|blow bubbles|walk on stilts""".replace("\n", "").split("|")
GAMES = """hide and seek|tag|catch|leapfrog|marbles|hopscotch|football|a guessing game|pirates|kings and queens|shadow games|
treasure hunt|hoops|skipping|jumping over puddles""".replace("\n", "").split("|")
JOBS = """baker|miller|chimney sweep|watchmaker|weaver|fishmonger|bus driver|nurse|bookseller|gatekeeper|bell ringer|cheese maker|basket maker|goldsmith|fisherman|gardener|shoemaker|teacher|postman|farmer|tailor|painter|carpenter|clockmaker|shepherd|librarian|
doctor|blacksmith|lighthouse keeper|captain|potter|beekeeper|ferryman|cook|musician|toymaker""".replace("\n", "").split("|")
SPEAKING = """teapot|lantern|clock|broom|kite|scarecrow|snowman|boat|bell|candle|chair|umbrella|wagon|lamp post|toy soldier|kettle|
wheelbarrow|pencil|mirror|drum|cup|weather vane|blanket|sailing ship|rocking horse|button|coat|ladder|tin box|windmill""".replace("\n", "").split("|")
TRAITS = {
    "brave": "was not afraid of [spiders|loud noises|the dark|anything]", "thoughtful": "thought about everything twice", "friendly": "said good morning to everyone", "noisy": "made more noise than a whole band",
    "tidy": "put everything in its place", "daring": "tried everything once", "honest": "never told a lie", "forgetful": "often forgot where {h.he} had put {h.his} things",
    "shy": "did not like to talk to strangers",
    "curious": "wanted to know everything", "kind": "liked to help others", "careful": "always looked twice", "cheerful": "sang from morning to evening",
    "clever": "had an idea for everything", "dreamy": "often forgot what [he|she] was doing", "stubborn": "never gave up easily",
    "quick": "was always the first at the door", "gentle": "never hurt even a fly", "funny": "made everyone laugh", "patient": "could wait for a long time",
    "polite": "said please and thank you", "lively": "could not sit still", "quiet": "liked to listen", "hungry": "thought about food all day",
    "messy": "never put anything away", "proud": "liked to be the best at everything", "sleepy": "could fall asleep anywhere",
}
LIKES = [
    "collect [stones|feathers|shells|leaves|buttons]",
    "look at the [clouds|stars|moon]",
    "play {game}",
    "listen to [stories|songs|the rain]",
    "draw [animals|ships|flowers|maps]",
    "climb on [walls|rocks|hay]",
    "splash in puddles",
    "pick [flowers|berries|apples]",
    "build [towers|little houses|dams]",
    "sing [loud|silly|old] songs",
    "eat {food}s",
    "roll down hills",
    "watch the [birds|boats|ants]",
    "ask questions",
    "sleep in the sun",
    "help in the kitchen",
    "tell [riddles|jokes]",
    "run in the wind",
]
