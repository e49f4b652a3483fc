//! The names by which a client may call cameras and the state.
//!
//! A name matches with `/` for `.`, because openpi's clients write paths and LeRobot's datasets write dots, and nested maps
//! are read as paths as well. Each camera has its dataset's name, `observation/NAME` and `NAME`; the short names of LIBERO,
//! `observation/image` and `observation/wrist_image`, are aliases for the cameras of other robots.

use crate::policy::Metadata;

/// Words in the name of a camera that is mounted on the hand.
const ON_HAND: [&str; 4] = ["wrist", "hand", "gripper", "eef"];

/// The accepted names of all inputs, the dataset's own first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Names {
    /// For each camera.
    pub(crate) cameras: Vec<Vec<String>>,
    /// Of the state.
    pub(crate) state: Vec<String>,
}

impl Names {
    pub(crate) fn new(metadata: &Metadata) -> Names {
        let mut cameras: Vec<Vec<String>> = metadata.cameras.iter().map(|key| camera(key)).collect();
        let taken = |cameras: &[Vec<String>], name: &str| cameras.iter().flatten().any(|known| known == name);
        let on_hand = |key: &String| ON_HAND.iter().any(|word| last(key).contains(word));
        let wrist = metadata.cameras.iter().position(on_hand);
        let scene = metadata.cameras.iter().position(|key| !on_hand(key));
        let aliases = [
            ("observation/image", scene.or(Some(0))),
            ("observation/wrist_image", wrist.or(Some(1).filter(|_| scene == Some(0)))),
        ];
        for (name, place) in aliases {
            let is_taken = taken(&cameras, name);
            if let Some(names) = place.and_then(|place| cameras.get_mut(place)).filter(|_| !is_taken) {
                names.push(name.to_owned());
            }
        }
        let mut state = vec![normalized(&metadata.state_key)];
        for name in ["observation/state", "state"] {
            if !state.iter().any(|known| known == name) && !taken(&cameras, name) {
                state.push(name.to_owned());
            }
        }
        state.retain(|name| !name.is_empty());
        Names { cameras, state }
    }
}

/// A name as it is compared.
pub(crate) fn normalized(name: &str) -> String {
    name.replace('.', "/")
}

fn camera(key: &str) -> Vec<String> {
    let short = last(key);
    let mut names = vec![normalized(key)];
    for name in [format!("observation/{short}"), format!("images/{short}"), short.to_owned()] {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// The last part of a key.
fn last(key: &str) -> &str {
    key.rsplit(['.', '/']).next().unwrap_or(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(cameras: &[&str]) -> Names {
        let cameras = cameras.iter().map(|key| (*key).to_owned()).collect();
        Names::new(&Metadata { cameras, state_key: "observation.state".to_owned(), ..Metadata::default() })
    }

    #[test]
    fn libero_cameras_have_the_short_names() {
        let names = names(&["observation.images.image", "observation.images.wrist_image"]);
        assert_eq!(names.cameras[0], ["observation/images/image", "observation/image", "images/image", "image"]);
        assert_eq!(names.cameras[1][1], "observation/wrist_image");
        assert_eq!(names.state, ["observation/state", "state"]);
    }

    #[test]
    fn cameras_of_other_robots_have_aliases() {
        let aloha = names(&["observation.images.cam_left_wrist", "observation.images.cam_high"]);
        assert!(aloha.cameras[0].contains(&"observation/wrist_image".to_owned()));
        assert!(aloha.cameras[1].contains(&"observation/image".to_owned()));
        let two = names(&["top", "side"]);
        assert!(two.cameras[0].contains(&"observation/image".to_owned()));
        assert!(two.cameras[1].contains(&"observation/wrist_image".to_owned()));
        assert!(names(&[]).cameras.is_empty());
        let one = names(&["wrist"]);
        assert!(one.cameras[0].contains(&"observation/image".to_owned()), "the only camera has both");
    }
}
