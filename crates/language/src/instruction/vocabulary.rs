//! The word lists: what a household robot is told about. Add a word here and the grammar knows it.
//!
//! A noun's [`Kind`] is what reference resolution asks about: `it` in `close it` is something that opens, `from the
//! drawer` means out of it and `from the table` off it. Compounds (`cream cheese box`) need no entry; their last word
//! decides. Lists are texts of words separated by spaces.

use super::lexicon::{Kind, Preposition};
use super::tree::{Position, Verb};

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
const PART_SURFACE: Kind = kind(false, true, false, false, true);
const PART_DOOR: Kind = kind(false, false, true, false, true);
const PART_SWITCHED: Kind = kind(false, true, false, true, true);
const WORKSPACE: Kind = Kind { workspace: true, ..SURFACE };

/// Nouns by kind, in the singular, separated by spaces.
pub(super) const NOUNS: &[(Kind, &str)] = &[
    (PART_HOLDER, "drawer compartment"),
    (PART_SURFACE, "shelf side edge corner end layer region area tier section"),
    (PART_DOOR, "door lid flap"),
    (PART_SWITCHED, "burner hob"),
    (PART, "handle knob button switch dial rim leg surface base slot hook"),
    (WORKSPACE, "table tabletop counter countertop worktop workspace desk workbench bench"),
    (
        CLOSABLE,
        "cabinet cupboard fridge refrigerator freezer safe wardrobe closet laptop window suitcase briefcase backpack \
         chest toolbox mailbox bin trashcan",
    ),
    (APPLIANCE, "microwave oven dishwasher washer dryer grill"),
    (COOKER, "stove stovetop cooktop hotplate scale toaster blender mixer"),
    (
        SWITCHED,
        "light lamp tap faucet fan kettle radio television tv machine maker computer monitor heater speaker \
         flashlight printer coffeemaker",
    ),
    (
        HOLDER,
        "basket bowl box caddy mug cup glass pot pan saucepan skillet wok ramekin bottle jar can carton container \
         crate bag bucket pitcher jug vase sink dishrack canister tin case packet package pouch tub casserole teapot \
         flask thermos tumbler goblet colander strainer organizer bookcase pocket holder trash garbage tube beaker \
         cart trolley nest drainer",
    ),
    (OPEN_HOLDER, "tray dish rack"),
    (
        SURFACE,
        "plate stand board mat coaster saucer platter napkin chair stool couch sofa bed floor bookshelf pad cloth \
         towel placemat pedestal platform block pillow cushion griddle ground windowsill mantel",
    ),
    (
        THING,
        "soup sauce ketchup mustard mayonnaise dressing pudding butter cheese cream milk juice wine water beer coffee \
         tea soda cola oil vinegar syrup honey jam salt pepper sugar flour rice pasta noodle cereal bread toast bun \
         bagel cake cookie biscuit cracker pie donut croissant chip candy chocolate popcorn yogurt egg bacon ham \
         sausage steak meat chicken fish tuna bbq barbecue alphabet salad moka sandwich burger pizza taco hotdog \
         apple orange banana pear peach plum lemon lime grape cherry strawberry berry kiwi mango melon pineapple \
         tomato potato carrot onion garlic corn cucumber eggplant broccoli lettuce cabbage mushroom pumpkin avocado \
         bean nut peanut almond snack food fruit vegetable drink spice herb ice fork knife spoon spatula ladle whisk \
         tongs chopstick peeler grater scoop utensil cutlery opener corkscrew sponge brush soap detergent shaker \
         grinder cork cap cover foil rag paper tissue roll straw candle lighter match book notebook magazine \
         newspaper pen pencil marker eraser ruler scissors stapler tape glue folder envelope letter card calculator \
         clip pin stamp phone smartphone tablet keyboard mouse remote camera headphone charger cable plug battery \
         watch clock key wallet purse hat shoe sock shirt glove hammer screwdriver wrench plier drill saw nail screw \
         bolt rope tool toy ball cube cylinder sphere pyramid brick doll bear car truck train puzzle dice ring peg \
         rod stick wheel blanket curtain plant flower mirror picture frame figurine statue trophy umbrella shampoo \
         toothbrush toothpaste lotion comb razor medicine pill object item thing pile kitchen dining coke pepsi oat \
         cupcake muffin waffle pancake wall loaf oatmeal",
    ),
];

/// Plurals that no rule gives, with their singular.
pub(super) const IRREGULAR_PLURALS: &[(&str, &str)] = &[("mice", "mouse"), ("dice", "dice")];

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
     same sugary chefmate salted double single hand";

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
];

/// Verbs. A second word is a particle: it follows the verb at once or comes after the object (`turn the stove on`).
pub(super) const VERBS: &[(&str, Option<&str>, Verb)] = &[
    ("pick", Some("up"), Verb::Pick),
    ("pick", None, Verb::Pick),
    ("grab", None, Verb::Pick),
    ("take", None, Verb::Pick),
    ("get", None, Verb::Pick),
    ("fetch", None, Verb::Pick),
    ("collect", None, Verb::Pick),
    ("retrieve", None, Verb::Pick),
    ("remove", None, Verb::Pick),
    ("place", None, Verb::Place),
    ("position", None, Verb::Place),
    ("put", None, Verb::Put),
    ("put", Some("down"), Verb::Put),
    ("set", None, Verb::Put),
    ("set", Some("down"), Verb::Put),
    ("lay", None, Verb::Put),
    ("move", None, Verb::Put),
    ("bring", None, Verb::Put),
    ("insert", None, Verb::Put),
    ("store", None, Verb::Put),
    ("transfer", None, Verb::Put),
    ("relocate", None, Verb::Put),
    ("deposit", None, Verb::Put),
    ("leave", None, Verb::Put),
    ("return", None, Verb::Put),
    ("hang", None, Verb::Put),
    ("throw", None, Verb::Put),
    ("toss", None, Verb::Put),
    ("push", None, Verb::Push),
    ("slide", None, Verb::Push),
    ("shove", None, Verb::Push),
    ("pull", None, Verb::Pull),
    ("drag", None, Verb::Pull),
    ("stack", None, Verb::Stack),
    ("open", None, Verb::Open),
    ("open", Some("up"), Verb::Open),
    ("close", None, Verb::Close),
    ("shut", None, Verb::Close),
    ("turn", Some("on"), Verb::TurnOn),
    ("switch", Some("on"), Verb::TurnOn),
    ("activate", None, Verb::TurnOn),
    ("start", None, Verb::TurnOn),
    ("turn", Some("off"), Verb::TurnOff),
    ("deactivate", None, Verb::TurnOff),
    ("switch", Some("off"), Verb::TurnOff),
    ("grasp", None, Verb::Grasp),
    ("grip", None, Verb::Grasp),
    ("hold", None, Verb::Grasp),
    ("lift", None, Verb::Lift),
    ("lift", Some("up"), Verb::Lift),
    ("raise", None, Verb::Lift),
    ("release", None, Verb::Release),
    ("drop", None, Verb::Release),
    ("reach", None, Verb::Reach),
    ("reach", Some("for"), Verb::Reach),
    ("go", None, Verb::Reach),
    ("approach", None, Verb::Reach),
];

/// Prepositions by relation, longer ones first. Those built on a position (`to the left of`) follow from [`POSITIONS`].
pub(super) const PREPOSITIONS: &[(&[&str], Preposition)] = &[
    (&["in", "between"], Preposition::Between),
    (&["next", "to"], Preposition::NextTo),
    (&["close", "to"], Preposition::NextTo),
    (&["near", "to"], Preposition::NextTo),
    (&["adjacent", "to"], Preposition::NextTo),
    (&["inside", "of"], Preposition::In),
    (&["on", "to"], Preposition::On),
    (&["in", "to"], Preposition::In),
    (&["between"], Preposition::Between),
    (&["on"], Preposition::On),
    (&["onto"], Preposition::On),
    (&["upon"], Preposition::On),
    (&["in"], Preposition::In),
    (&["into"], Preposition::In),
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
];

/// Words that belong to the grammar itself and are no verb, noun, adjective, position or preposition.
pub(super) const FUNCTION_WORDS: &str = "the a an this that these those my your some its their and then after it them they both of one ones up down away \
     there which is are all times time once twice next close adjacent out for";

/// Words that may stand at either end of a clause and change nothing.
pub(super) const ADVERBS: &str =
    "please now first finally also carefully gently slowly quickly again lastly afterwards just";

/// Articles and other determiners.
pub(super) const DETERMINERS: &str = "the a an this that these those my your some";

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
];
