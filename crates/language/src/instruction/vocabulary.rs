//! The word lists: what a household robot is told about. Add a word here and the grammar knows it.
//!
//! A noun's [`Kind`] is what reference resolution asks about: `it` in `close it` is something that opens, `from the
//! drawer` means out of it and `from the table` off it. Compounds (`cream cheese box`) need no entry; their last word
//! decides. Lists are texts of words separated by spaces.

use super::lexicon::{Kind, Preposition};
use super::tree::Position;

const fn kind(holds: bool, carries: bool, opens: bool, switches: bool, part: bool) -> Kind {
    Kind { holds, carries, opens, switches, part, workspace: false }
}

const THING: Kind = kind(false, false, false, false, false);
const HOLDER: Kind = kind(true, false, false, false, false);
const OPEN_HOLDER: Kind = kind(true, true, false, false, false);
const SURFACE: Kind = kind(false, true, false, false, false);
const CLOSABLE: Kind = kind(true, false, true, false, false);
const APPLIANCE: Kind = kind(true, false, true, true, false);
const COOKER: Kind = kind(false, true, false, true, false);
const SWITCHED: Kind = kind(false, false, false, true, false);
const PART: Kind = kind(false, false, false, false, true);
const PART_HOLDER: Kind = kind(true, false, true, false, true);
const PART_HOLE: Kind = kind(true, false, false, false, true);
const PART_SURFACE: Kind = kind(false, true, false, false, true);
const PART_DOOR: Kind = kind(false, false, true, false, true);
const PART_SWITCHED: Kind = kind(false, true, false, true, true);
const WORKSPACE: Kind = Kind { workspace: true, ..SURFACE };

/// Nouns by kind, in the singular, separated by spaces.
pub(super) const NOUNS: &[(Kind, &str)] = &[
    (PART_HOLDER, "drawer compartment"),
    (PART_SURFACE, "shelf side edge corner end layer region area tier section surface part portion"),
    (PART_HOLE, "slot hole socket port"),
    (PART_DOOR, "door lid flap hatch"),
    (PART_SWITCHED, "burner hob"),
    (
        PART,
        "handle knob button switch dial rim leg base hook lever contents content trigger neck spout tip hinge half head",
    ),
    (WORKSPACE, "table tabletop counter countertop worktop workspace desk workbench bench"),
    (
        CLOSABLE,
        "cabinet cupboard fridge refrigerator freezer safe wardrobe closet laptop window suitcase briefcase backpack \
         chest toolbox mailbox bin trashcan slider locker dustbin tupperware lunchbox",
    ),
    (APPLIANCE, "microwave oven dishwasher washer dryer grill"),
    (COOKER, "stove stovetop cooktop hotplate scale toaster blender mixer cooker"),
    (
        SWITCHED,
        "light lamp tap faucet fan kettle radio television tv machine maker computer monitor heater speaker flashlight \
         printer coffeemaker led bulb lightbulb alarm projector console",
    ),
    (
        HOLDER,
        "basket bowl box caddy mug cup glass pot pan saucepan skillet wok ramekin bottle jar can carton container \
         crate bag bucket pitcher jug vase sink dishrack canister tin case packet package pouch tub casserole teapot \
         flask thermos tumbler goblet colander strainer organizer bookcase pocket holder trash garbage tube beaker \
         cart trolley nest drainer dustpan outlet casing cage hamper bathtub cupholder penholder vessel cavity pit \
         hoop sleeve cooler tank trough planter ziploc",
    ),
    (OPEN_HOLDER, "tray dish rack"),
    (
        SURFACE,
        "plate stand board mat coaster saucer platter napkin chair stool couch sofa bed floor bookshelf pad cloth \
         towel placemat pedestal platform block pillow cushion griddle ground windowsill mantel hanger carpet rug peg \
         tower stack pallet whiteboard doormat tablecloth shoulder mousepad conveyor ledge",
    ),
    (
        THING,
        "soup sauce ketchup mustard mayonnaise dressing pudding butter cheese cream milk juice wine water beer coffee \
         tea soda cola oil vinegar syrup honey jam salt pepper sugar flour rice pasta noodle cereal bread toast bun \
         bagel cake cookie biscuit cracker pie donut croissant chip candy chocolate popcorn yogurt egg bacon ham \
         sausage steak meat chicken fish tuna bbq barbecue alphabet salad moka sandwich burger pizza taco hotdog apple \
         orange banana pear peach plum lemon lime grape cherry strawberry berry kiwi mango melon pineapple tomato \
         potato carrot onion garlic corn cucumber eggplant broccoli lettuce cabbage mushroom pumpkin avocado bean nut \
         peanut almond snack food fruit vegetable drink spice herb ice fork knife spoon spatula ladle whisk tongs \
         chopstick peeler grater scoop utensil cutlery opener corkscrew sponge brush soap detergent shaker broom mop \
         dirt dust debris crumb liquid rubbish litter mess grinder cork cap cover foil rag paper tissue roll straw \
         candle lighter match book notebook magazine newspaper pen pencil marker eraser ruler scissors stapler tape \
         glue folder envelope letter card calculator clip pin stamp phone smartphone tablet keyboard mouse remote \
         camera headphone charger cable plug battery watch clock key wallet purse hat shoe sock shirt glove hammer \
         screwdriver wrench plier drill saw nail screw bolt rope tool toy ball cube cylinder sphere pyramid brick doll \
         bear car truck train puzzle dice ring rod stick wheel blanket curtain plant flower mirror picture frame \
         figurine statue trophy umbrella shampoo money coin banknote usb airpod lego domino bead necklace padlock \
         shoelace sweatshirt clothes clothing sweater jacket coat pants trousers jeans dress skirt scarf laundry \
         garment fabric puck gear stethoscope duck dinosaur animal plush teddy robot arm hand gripper finger effector \
         wrist thumb triangle hexagon star moon heart circle rectangle cone prism shape target position location spot \
         piece sheet slice capsule pod syringe vial pipette corncob zucchini squash radish beet turnip celery spinach \
         pea sushi shrimp lobster crab pickle olive raspberry blueberry watermelon papaya coconut baguette tortilla \
         rxbar redbull sprite pringles jalapeno basketball football baseball soccer tennis rubber band string thread \
         cord wire connector adapter joystick controller chess checker jenga tile clamp vise tweezers allen hex \
         sunglasses goggles helmet mask bandage sanitizer spray paint canvas crayon chalk highlighter sticker label \
         person human user friend patient child baby dog cat toothbrush toothpaste lotion comb razor medicine pill \
         object item thing pile home kitchen dining coke pepsi oat cupcake muffin waffle pancake wall loaf oatmeal",
    ),
];

/// Plurals that no rule gives, with their singular.
pub(super) const IRREGULAR_PLURALS: &[(&str, &str)] = &[
    ("mice", "mouse"),
    ("dice", "dice"),
    ("people", "person"),
    ("children", "child"),
    ("clothes", "clothes"),
    ("pants", "pants"),
    ("trousers", "trousers"),
    ("jeans", "jeans"),
    ("glasses", "glass"),
    ("sunglasses", "sunglasses"),
    ("goggles", "goggles"),
    ("tweezers", "tweezers"),
    ("scissors", "scissors"),
    ("tongs", "tongs"),
    ("pliers", "plier"),
    ("contents", "contents"),
    ("pringles", "pringles"),
];

/// Colours: two of them around `and` are one description (`yellow and white mug`).
pub(super) const COLOURS: &str = "black white red green blue yellow orange purple pink brown grey gray beige golden gold silver turquoise teal \
     cyan magenta violet maroon navy tan khaki";

/// Other adjectives: shade, pattern, material, size, shape, state.
pub(super) const ADJECTIVES: &str = "dark light bright pale striped spotted dotted checkered patterned plain colorful colourful transparent clear \
     opaque shiny matte wooden wood metal metallic steel stainless iron cast copper brass aluminum aluminium plastic \
     glass ceramic porcelain stone marble rubber leather cardboard wicker bamboo paper cotton small little tiny mini \
     big large huge giant medium tall short long wide narrow thin thick deep shallow flat round square rectangular \
     circular oval curved new old fresh ripe rotten hot cold warm frozen iced canned sliced dried empty full filled \
     half clean dirty wet dry closed shut sealed heavy soft hard frying cutting mixing baking serving cooking \
     measuring chopping drying washing rolling reading sparkling olive soy akita stuffed decorative electric other \
     same sugary chefmate salted double single hand sliding grasped stacked remaining correct given edible raw fried \
     boiled cooked roasted toasted baked peeled chopped cracked broken crumpled wrinkled folded spilled washed used \
     thrown gathered sweet sour bitter spicy allen shaped scented colored coloured matching matched different \
     various first second third fourth last next whole loose tight inner outer portable digital wireless sticky \
     crispy fluffy fuzzy toy lego felt woolen knitted silicone tin foam acrylic wavy twisted bent straight pointed \
     triangular hexagonal cylindrical conical spherical cubic holding watering sewing soldering farthest closest \
     biggest largest smallest tallest shortest longest heaviest bright dim";

/// Where among its like a thing is, as adjective or noun.
pub(super) const POSITIONS: &[(&str, Position)] = &[
    ("left", Position::Left),
    ("leftmost", Position::Left),
    ("right", Position::Right),
    ("rightmost", Position::Right),
    ("middle", Position::Middle),
    ("mid", Position::Middle),
    ("center", Position::Center),
    ("centre", Position::Center),
    ("central", Position::Center),
    ("front", Position::Front),
    ("frontmost", Position::Front),
    ("nearest", Position::Front),
    ("forward", Position::Front),
    ("forwards", Position::Front),
    ("back", Position::Back),
    ("rear", Position::Back),
    ("rearmost", Position::Back),
    ("backward", Position::Back),
    ("backwards", Position::Back),
    ("top", Position::Top),
    ("topmost", Position::Top),
    ("upper", Position::Top),
    ("uppermost", Position::Top),
    ("bottom", Position::Bottom),
    ("bottommost", Position::Bottom),
    ("lower", Position::Bottom),
    ("lowermost", Position::Bottom),
    ("lowest", Position::Bottom),
    ("highest", Position::Top),
    ("upward", Position::Top),
    ("upwards", Position::Top),
    ("downward", Position::Bottom),
    ("downwards", Position::Bottom),
    ("leftward", Position::Left),
    ("leftwards", Position::Left),
    ("rightward", Position::Right),
    ("rightwards", Position::Right),
];

/// Prepositions by relation, longer ones first. Those built on a position (`to the left of`) follow from [`POSITIONS`].
pub(super) const PREPOSITIONS: &[(&[&str], Preposition)] = &[
    (&["in", "between"], Preposition::Between),
    (&["next", "to"], Preposition::NextTo),
    (&["closest", "to"], Preposition::NextTo),
    (&["nearest", "to"], Preposition::NextTo),
    (&["closer", "to"], Preposition::NextTo),
    (&["furthest", "from"], Preposition::Other("furthest from")),
    (&["farthest", "from"], Preposition::Other("furthest from")),
    (&["close", "to"], Preposition::NextTo),
    (&["near", "to"], Preposition::NextTo),
    (&["adjacent", "to"], Preposition::NextTo),
    (&["inside", "of"], Preposition::In),
    (&["on", "to"], Preposition::Onto),
    (&["in", "to"], Preposition::Into),
    (&["away", "from"], Preposition::Other("away from")),
    (&["opposite", "to"], Preposition::Other("opposite")),
    (&["across", "from"], Preposition::Other("opposite")),
    (&["between"], Preposition::Between),
    (&["on"], Preposition::On),
    (&["onto"], Preposition::Onto),
    (&["upon"], Preposition::On),
    (&["in"], Preposition::In),
    (&["into"], Preposition::Into),
    (&["inside"], Preposition::In),
    (&["within"], Preposition::In),
    (&["under"], Preposition::Under),
    (&["underneath"], Preposition::Under),
    (&["beneath"], Preposition::Under),
    (&["below"], Preposition::Under),
    (&["atop"], Preposition::OnTopOf),
    (&["over"], Preposition::OnTopOf),
    (&["above"], Preposition::OnTopOf),
    (&["beside"], Preposition::NextTo),
    (&["alongside"], Preposition::NextTo),
    (&["near"], Preposition::NextTo),
    (&["by"], Preposition::NextTo),
    (&["at"], Preposition::At),
    (&["against"], Preposition::NextTo),
    (&["behind"], Preposition::BackOf),
    (&["to"], Preposition::To),
    (&["toward"], Preposition::To),
    (&["towards"], Preposition::To),
    (&["from"], Preposition::From),
    (&["out", "of"], Preposition::OutOf),
    (&["off", "of"], Preposition::Off),
    (&["off"], Preposition::Off),
    (&["around"], Preposition::Other("around")),
    (&["through"], Preposition::Other("through")),
    (&["across"], Preposition::Other("across")),
    (&["along"], Preposition::Other("along")),
    (&["past"], Preposition::Other("past")),
    (&["outside"], Preposition::Other("outside")),
    (&["beyond"], Preposition::Other("beyond")),
    (&["opposite"], Preposition::Other("opposite")),
    (&["among"], Preposition::Other("among")),
];

/// Words that belong to the grammar itself and are no verb, noun, adjective, position or preposition.
pub(super) const FUNCTION_WORDS: &str = "the a an this that these those my your some its their and then after it them they both of one ones up down \
     away there which is are all times time once twice upright sideways clockwise counterclockwise anticlockwise \
     upside next close adjacent out for except every each any or with using until while so order together apart \
     aside not without everything other another degrees degree to if when where because but unless before as such \
     than instead what who whose how why since although though during was were be been being am does do did has \
     have had could should would shall might must no nor neither either here very too only even never dont cant cannot excluding besides rather sure";

/// Words that may stand at either end of a clause and change nothing.
pub(super) const ADVERBS: &str = "please now first finally also carefully gently slowly quickly again lastly afterwards just fully completely \
     slightly partially firmly lightly directly immediately simply fast neatly next";

/// Articles and other determiners.
pub(super) const DETERMINERS: &str = "the a an this that these those my your some any our his her every each";

/// What things are ordered by: `sort the blocks by size`.
pub(super) const ATTRIBUTES: &str = "size color colour shape type kind height weight length width category number name material value texture brand \
     date age";

/// Adjectives that say which of several things in a row, `the second hook from the left`.
pub(super) const ORDINALS: &str = "first second third fourth fifth sixth last";

/// Nouns for a tool or a part of the robot: `with` one of them says how, `with` anything else says which.
pub(super) const TOOLS: &str = "hand hands arm arms gripper grippers finger fingers robot cloth towel rag sponge knife fork spoon spatula ladle \
     brush broom mop tongs scissors screwdriver hammer wrench stick tool handle key opener peeler whisk scoop eraser \
     net vacuum squeegee shovel rake needle iron drill saw plier tweezers duster napkin tissue hook rope string tape \
     glue chopstick";

/// Nouns that end as adverbs do.
pub(super) const NOUNS_IN_LY: &str = "supply assembly family jelly belly butterfly lily dolly firefly monopoly trolly";

/// The robot itself: moving it is reaching.
pub(super) const BODY: &str = "arm gripper effector robot";

/// Articles and prepositions of other languages, which tell them from English where no English one is around.
pub(super) const FOREIGN: &str = "le la les une des du dans sur sous avec et au aux der das den dem ein eine einen und auf mit zum zur el los las \
     un una con sobre del al il lo gli nel nella sul sulla os em com um uma na het een op naar ett och på di da e y \
     de en tiroir puis dann luego";

/// Counting words.
pub(super) const NUMBERS: &[(&str, u32)] = &[
    ("one", 1),
    ("two", 2),
    ("three", 3),
    ("four", 4),
    ("five", 5),
    ("six", 6),
    ("seven", 7),
    ("eight", 8),
    ("nine", 9),
    ("ten", 10),
    ("eleven", 11),
    ("twelve", 12),
    ("thirteen", 13),
    ("fourteen", 14),
    ("fifteen", 15),
    ("sixteen", 16),
    ("seventeen", 17),
    ("eighteen", 18),
    ("nineteen", 19),
    ("twenty", 20),
    ("thirty", 30),
    ("forty", 40),
    ("fifty", 50),
    ("sixty", 60),
    ("seventy", 70),
    ("eighty", 80),
    ("ninety", 90),
];
