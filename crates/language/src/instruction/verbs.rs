//! The verbs: those of LIBERO, each a primitive of its own, and a general lexicon of actions that keep their name as
//! text (`act_on "fold" "towel"`).
//!
//! An action's [`Manner`] says what a place after its object is. `pour the water in the cup` names where the water goes;
//! `press the button on the wall` names which button. `to`, `into` and `onto` always say where something goes.

use super::tree::Verb;

/// What a place after the object of an action means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Manner {
    /// The object goes there.
    Moving,
    /// The object is there.
    InPlace,
    /// The action needs no object.
    Alone,
}

/// Actions that have no primitive of their own, by what a place after their object means.
pub(super) const ACTIONS: &[(Manner, &str)] = &[
    (
        Manner::Moving,
        "pour insert hang throw toss sweep plug screw attach scoop load dump feed hand pass give serve spread \
         sprinkle squirt spray drip thread slot stock pack mount install connect dock align fit stick tape glue clip \
         pin tie wrap roll bounce kick shoot dunk flick fling guide ease lower brush scrape scatter send deliver \
         carry dip soak submerge sort group arrange distribute add transport tuck nest balance lean rest bury smear apply \
         hook fasten link join deal wedge nudge swipe shift swing chuck discard dispose unload ladle spoon stuff \
         squish drape suspend hitch buckle strap secure line separate spill drizzle trickle stamp slip reposition \
         reorient orient center centre scoot",
    ),
    (
        Manner::InPlace,
        "fold unfold press rotate turn twist spin wipe clean wash rinse scrub dry dust mop vacuum polish sanitize sterilize \
         flip invert tilt tip topple knock hit strike tap touch poke prod cut slice chop peel grate mash crush crack \
         break tear rip stir mix whisk beat shake squeeze pinch unscrew loosen tighten unplug disconnect detach \
         unhook unlatch latch lock unlock zip unzip button unbutton untie knot unwrap uncover cover unroll unpack \
         empty fill water cook fry boil bake toast grill heat warm cool freeze thaw sauté saute season taste eat \
         drink smell blow light ignite extinguish write draw paint erase sketch color colour read scan type click \
         dial play strum ring charge recharge refill flush decorate sharpen unfasten unbuckle untangle disinfect \
         eject snap slap steer tow wind unwind crumble shred snip carve dice mince drain strain sift roast steam \
         sear garnish unbox unpin measure weigh inspect check count find search locate look watch examine show point \
         straighten flatten smooth crumple stretch bend unbend iron sew stitch weave braid unbraid sleeve unsleeve \
         rake dig shovel hammer nail drill saw sand file pump inflate deflate hug pet stroke scratch massage comb \
         catch dodge avoid bypass assemble disassemble build unstack collapse dismantle repair fix adjust reset \
         toggle uncap cap cork uncork pop unseal seal use operate engage disengage trigger trace follow clear tidy \
         organize organise declutter prepare make brew greet kiss dispense gather stop change replace swap exchange \
         interchange switch transform unclip unthread trim shave rub blend knead lace unlace crank wring hide staple punch label \
         undo identify select choose complete finish perform execute create solve",
    ),
    (
        Manner::Alone,
        "wave clap dance wait stand sit walk trot bow nod jump sleep pause salute squat crouch kneel pace bound stay \
         idle relax",
    ),
];

/// Small words that complete a verb, at once (`clean up the table`) or after its object (`plug it in`).
pub(super) const PARTICLES: &str = "up down in out off on over away together apart around aside back open shut closed";

/// Actions on two things at once: `swap the bowl and the cup`, `swap the bowl with the cup`.
pub(super) const RECIPROCAL: &str = "swap exchange interchange";

/// Actions that need no object even where one was spoken of before: `pick up the pen and write`.
pub(super) const OBJECTLESS: &str = "write draw sketch type stir";

/// Words and phrases that say how, kept with the verb: `place the can upright` is the action `place upright`.
pub(super) const MANNERS: &[&[&str]] = &[
    &["upside", "down"],
    &["inside", "out"],
    &["in", "half"],
    &["in", "place"],
    &["in", "a", "row"],
    &["in", "a", "line"],
    &["in", "a", "circle"],
    &["in", "a", "column"],
    &["in", "a", "pile"],
    &["in", "order"],
    &["in", "circles"],
    &["in", "circular", "motions"],
    &["in", "a", "circular", "motion"],
    &["face", "up"],
    &["face", "down"],
    &["halfway"],
    &["partway"],
    &["back", "and", "forth"],
    &["side", "by", "side"],
    &["up", "and", "down"],
    &["from", "side", "to", "side"],
    &["from", "end", "to", "end"],
    &["counter", "clockwise"],
    &["anti", "clockwise"],
    &["counterclockwise"],
    &["anticlockwise"],
    &["clockwise"],
    &["upright"],
    &["sideways"],
    &["diagonally"],
    &["vertically"],
    &["horizontally"],
    &["flat"],
    &["still"],
    &["straight"],
];

/// Phrases that may follow an object and change nothing.
pub(super) const FILLERS: &[&[&str]] = &[
    &["all", "the", "way"],
    &["a", "little", "bit"],
    &["a", "bit"],
    &["a", "little"],
    &["one", "by", "one"],
    &["one", "at", "a", "time"],
    &["at", "a", "time"],
];

/// Words that may come before the first verb: `the robot should`, `could you please`, `your task is to`.
pub(super) const PREAMBLE: &str = "the a robot you i we it please your my our task goal is should must shall will can could would like want need \
     needs have has try to lets let us now instruction command okay ok hey hi hello kindly be able arm gripper \
     manipulator agent person he she";

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
    ("pick", Some("out"), Verb::Pick),
    ("take", Some("off"), Verb::Pick),
    ("take", Some("out"), Verb::Pick),
    ("take", Some("down"), Verb::Pick),
    ("get", Some("out"), Verb::Pick),
    ("extract", None, Verb::Pick),
    ("pickup", None, Verb::Pick),
    ("place", None, Verb::Place),
    ("position", None, Verb::Place),
    ("put", None, Verb::Put),
    ("put", Some("down"), Verb::Put),
    ("set", None, Verb::Put),
    ("set", Some("down"), Verb::Put),
    ("lay", None, Verb::Put),
    ("move", None, Verb::Put),
    ("bring", None, Verb::Put),
    ("store", None, Verb::Put),
    ("transfer", None, Verb::Put),
    ("relocate", None, Verb::Put),
    ("deposit", None, Verb::Put),
    ("leave", None, Verb::Put),
    ("return", None, Verb::Put),
    ("keep", None, Verb::Put),
    ("rearrange", None, Verb::Put),
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
    ("clutch", None, Verb::Grasp),
    ("clasp", None, Verb::Grasp),
    ("hold", None, Verb::Grasp),
    ("lift", None, Verb::Lift),
    ("lift", Some("up"), Verb::Lift),
    ("raise", None, Verb::Lift),
    ("hoist", None, Verb::Lift),
    ("release", None, Verb::Release),
    ("let", Some("go"), Verb::Release),
    ("drop", None, Verb::Release),
    ("reach", None, Verb::Reach),
    ("reach", Some("for"), Verb::Reach),
    ("go", None, Verb::Reach),
    ("drive", None, Verb::Reach),
    ("navigate", None, Verb::Reach),
    ("head", None, Verb::Reach),
    ("approach", None, Verb::Reach),
];
