//! Frames of a table with an object and a gripper, drawn without a renderer: enough to judge how pictures look in the page.

use report::Picture;

const SIDE: i32 = 128;

/// The gripper on its way, `share` of the displacement done.
pub(super) fn picture(episode: u64, displacement: [f64; 3], gripper: f64, share: f64) -> Picture {
    let [x, y, z] = displacement.map(|part| part * share * 200.0);
    let (start_x, start_y) = (52 + (episode * 13 % 24) as i32, 50 + (episode * 7 % 12) as i32);
    // Seen from the front: forward is down, left of the robot is to the right, up is up.
    let hand = (start_x + y as i32, start_y + x as i32 / 2 - z as i32);
    let open = (if gripper < 0.0 { 9.0 * (1.0 - share) } else { 4.0 + 6.0 * share }) as i32;
    let colours: [[u8; 3]; 4] = [[196, 66, 52], [60, 120, 70], [226, 200, 90], [70, 90, 160]];
    let colour = colours[(episode % 4) as usize];
    let mut pixels = Vec::with_capacity((SIDE * SIDE * 3) as usize);
    for v in 0..SIDE {
        for u in 0..SIDE {
            let mut pixel = if v < 38 { [186, 192, 196] } else { [172 - (v / 2) as u8, 132 - (v / 3) as u8, 92] };
            let (du, dv) = (u - 70, v - 92);
            if du * du + dv * dv * 3 < 300 {
                let shade = (du + 18).clamp(0, 40) as u8;
                pixel = colour.map(|part| part.saturating_sub(shade));
            }
            let (du, dv) = (u - hand.0, v - hand.1);
            if du.abs() < 7 && dv < 0 {
                pixel = [225 - du.unsigned_abs() as u8 * 6; 3];
            }
            if (0..16).contains(&dv) && (du.abs() - open).abs() < 3 {
                pixel = [52, 54, 58];
            }
            pixels.extend(pixel);
        }
    }
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, SIDE as u32, SIDE as u32);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_compression(png::Compression::High);
    encoder.write_header().unwrap().write_image_data(&pixels).unwrap();
    Picture(bytes)
}
