//! From planes of luma and chroma to red, green and blue, with the arithmetic of swscale.
//!
//! Datasets are compared with what the lerobot package reads, and that converts with swscale's unscaled path: 13 bit
//! coefficients, every product cut to a whole level on its own, the nearest chroma sample. The same is done here, so that
//! pixels are equal, not only close. With y, u, v of 8 bits and coefficients c of 13 bits after the point:
//!
//! ```text
//! luma  = c_y (8 y − 8 o) >> 16             o = 16 if the range is limited, else 0
//! red   = luma + (c_rv (8 v − 1024) >> 16)
//! green = luma + (c_gu (8 u − 1024) >> 16) + (c_gv (8 v − 1024) >> 16)
//! blue  = luma + (c_bu (8 u − 1024) >> 16)
//! ```
//!
//! Departure: swscale interpolates chroma for 4:4:4 and for an odd number of rows; here the nearest sample is taken always.

use std::sync::Arc;

use crate::frame::Frame;

/// How many pixels share one chroma sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chroma {
    /// There is no chroma: grey.
    None,
    /// Two by two pixels.
    Quarter,
    /// Two pixels of one row.
    Half,
    /// One pixel.
    Full,
}

/// The weights of red, green and blue in luma.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Matrix {
    /// ITU-R BT.601, also what a stream means that does not say.
    Bt601,
    /// ITU-R BT.709.
    Bt709,
    /// FCC 73.682.
    Fcc,
    /// SMPTE 240M.
    Smpte240,
    /// ITU-R BT.2020, not constant luminance.
    Bt2020,
}

impl Matrix {
    /// The matrix with a number of ITU-T H.273, `matrix_coefficients`; `None` if it is no such weighting.
    pub fn of(number: u32) -> Option<Matrix> {
        match number {
            1 => Some(Matrix::Bt709),
            2 | 5 | 6 => Some(Matrix::Bt601),
            4 => Some(Matrix::Fcc),
            7 => Some(Matrix::Smpte240),
            9 => Some(Matrix::Bt2020),
            _ => None,
        }
    }

    /// Swscale's table: v to red, u to blue, u to green, v to green, with 16 bits after the point, for limited range.
    fn table(self) -> [i64; 4] {
        match self {
            Matrix::Bt601 => [104_597, 132_201, 25_675, 53_279],
            Matrix::Bt709 => [117_489, 138_438, 13_975, 34_925],
            Matrix::Fcc => [104_448, 132_798, 24_759, 53_109],
            Matrix::Smpte240 => [117_579, 136_230, 16_907, 35_559],
            Matrix::Bt2020 => [110_013, 140_363, 12_277, 42_626],
        }
    }
}

/// A decoded picture as the codec gives it. Rows are `strides` bytes apart and may be longer than the picture is wide.
#[derive(Clone, Copy, Debug)]
pub struct Planes<'a> {
    /// In pixels.
    pub width: usize,
    /// In pixels.
    pub height: usize,
    /// Which pixels share chroma.
    pub chroma: Chroma,
    /// Luma, then the two of chroma, which are empty if there is none.
    pub planes: [&'a [u8]; 3],
    /// From row to row, in bytes: of luma and of chroma.
    pub strides: [usize; 2],
    /// The weights.
    pub matrix: Matrix,
    /// Whether levels are 0 to 255, not 16 to 235.
    pub full_range: bool,
}

impl<'a> Planes<'a> {
    /// The width and height of a chroma plane.
    pub fn chroma_size(&self) -> (usize, usize) {
        match self.chroma {
            Chroma::None => (0, 0),
            Chroma::Quarter => (self.width.div_ceil(2), self.height.div_ceil(2)),
            Chroma::Half => (self.width.div_ceil(2), self.height),
            Chroma::Full => (self.width, self.height),
        }
    }

    /// Whether every row is there.
    pub fn whole(&self) -> bool {
        let (width, height) = self.chroma_size();
        holds(self.planes[0], self.strides[0], self.width, self.height)
            && holds(self.planes[1], self.strides[1], width, height)
            && holds(self.planes[2], self.strides[1], width, height)
    }

    /// One row of a plane, 0 for luma, without what is beyond the picture.
    pub fn row(&self, plane: usize, row: usize) -> &'a [u8] {
        let (stride, width) = match plane {
            0 => (self.strides[0], self.width),
            _ => (self.strides[1], self.chroma_size().0),
        };
        &self.planes[plane][row * stride..row * stride + width]
    }
}

fn holds(plane: &[u8], stride: usize, width: usize, height: usize) -> bool {
    height == 0 || (stride >= width && plane.len() >= (height - 1) * stride + width)
}

/// The picture in red, green and blue. The planes must be [`whole`](Planes::whole).
pub fn to_rgb(picture: &Planes<'_>) -> Frame {
    let Planes { width, height, .. } = *picture;
    let mut pixels: Arc<[u8]> = std::iter::repeat_n(0, width * height * 3).collect();
    // Nobody else has the new pixels yet, so there is always something to write to.
    if let Some(pixels) = Arc::get_mut(&mut pixels) {
        Weights::of(picture.matrix, picture.full_range).convert(picture, pixels);
    }
    Frame { width, height, pixels }
}

/// The coefficients, with 13 bits after the point, and the offset of luma, with 3.
struct Weights {
    luma: i16,
    offset: i16,
    red_v: i16,
    green_u: i16,
    green_v: i16,
    blue_u: i16,
}

impl Weights {
    fn of(matrix: Matrix, full_range: bool) -> Weights {
        let [red_v, blue_u, green_u, green_v] = matrix.table();
        let chroma = |weight: i64| thirteen(if full_range { weight * 224 / 255 } else { weight });
        Weights {
            luma: thirteen(if full_range { 1 << 16 } else { (1 << 16) * 255 / 219 }),
            offset: if full_range { 0 } else { 16 << 3 },
            red_v: chroma(red_v),
            // Rounding is not symmetric, so the sign goes in first, as in swscale.
            green_u: chroma(-green_u),
            green_v: chroma(-green_v),
            blue_u: chroma(blue_u),
        }
    }

    fn convert(&self, picture: &Planes<'_>, pixels: &mut [u8]) {
        let (width, samples) = (picture.width, picture.chroma_size().0);
        let mut luma = vec![0i16; width + 1];
        let mut tint = [vec![0i16; samples], vec![0i16; samples], vec![0i16; samples]];
        for (row, out) in pixels.chunks_exact_mut(width * 3).enumerate() {
            self.luma(picture.row(0, row), &mut luma[..width]);
            let [red, green, blue] = &mut tint;
            let shared = match picture.chroma {
                Chroma::Quarter => row % 2 == 1,
                _ => false,
            };
            if picture.chroma != Chroma::None && !shared {
                let at = if picture.chroma == Chroma::Quarter { row / 2 } else { row };
                self.tint(picture.row(1, at), picture.row(2, at), red, green, blue);
            }
            match picture.chroma {
                Chroma::None => {
                    for (pixel, &luma) in out.chunks_exact_mut(3).zip(&luma) {
                        pixel.fill(level(luma));
                    }
                }
                Chroma::Full => {
                    let tint = red.iter().zip(&*green).zip(&*blue);
                    for ((pixel, &luma), ((&red, &green), &blue)) in out.chunks_exact_mut(3).zip(&luma).zip(tint) {
                        pixel.copy_from_slice(&[level(luma + red), level(luma + green), level(luma + blue)]);
                    }
                }
                Chroma::Quarter | Chroma::Half => write_pairs(out, &luma, red, green, blue),
            }
        }
    }

    fn luma(&self, y: &[u8], luma: &mut [i16]) {
        for (luma, &y) in luma.iter_mut().zip(y) {
            *luma = high(i16::from(y) * 8 - self.offset, self.luma);
        }
    }

    fn tint(&self, u: &[u8], v: &[u8], red: &mut [i16], green: &mut [i16], blue: &mut [i16]) {
        let tint = red.iter_mut().zip(green).zip(blue);
        for ((&u, &v), ((red, green), blue)) in u.iter().zip(v).zip(tint) {
            let (u, v) = (i16::from(u) * 8 - 1024, i16::from(v) * 8 - 1024);
            *red = high(v, self.red_v);
            *green = high(u, self.green_u) + high(v, self.green_v);
            *blue = high(u, self.blue_u);
        }
    }
}

/// Writes a row in which two pixels share their tint. `luma` has one more than the row if its width is odd.
fn write_pairs(out: &mut [u8], luma: &[i16], red: &[i16], green: &[i16], blue: &[i16]) {
    let tint = red.iter().zip(green).zip(blue);
    let mut pairs = out.chunks_exact_mut(6);
    let mut tint = luma.chunks_exact(2).zip(tint);
    for (pixel, (luma, ((&red, &green), &blue))) in (&mut pairs).zip(&mut tint) {
        let &[first, second] = luma else { continue };
        pixel.copy_from_slice(&[
            level(first + red),
            level(first + green),
            level(first + blue),
            level(second + red),
            level(second + green),
            level(second + blue),
        ]);
    }
    let last = pairs.into_remainder();
    if let ([r, g, b], Some((luma, ((&red, &green), &blue)))) = (last, tint.next()) {
        (*r, *g, *b) = (level(luma[0] + red), level(luma[0] + green), level(luma[0] + blue));
    }
}

/// A coefficient with 16 bits after the point, rounded to 13.
fn thirteen(weight: i64) -> i16 {
    (((weight << 13) + (1 << 15)) >> 16) as i16
}

/// The upper half of a product.
fn high(a: i16, b: i16) -> i16 {
    ((i32::from(a) * i32::from(b)) >> 16) as i16
}

fn level(value: i16) -> u8 {
    value.clamp(0, 255) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(matrix: Matrix, full_range: bool, [y, u, v]: [u8; 3]) -> [u8; 3] {
        let planes = [&[y; 1][..], &[u; 1], &[v; 1]];
        let picture = Planes { width: 1, height: 1, chroma: Chroma::Full, planes, strides: [1, 1], matrix, full_range };
        let frame = to_rgb(&picture);
        [frame.pixels[0], frame.pixels[1], frame.pixels[2]]
    }

    #[test]
    fn black_white_and_grey_have_no_tint() {
        for matrix in [Matrix::Bt601, Matrix::Bt709, Matrix::Fcc, Matrix::Smpte240, Matrix::Bt2020] {
            assert_eq!(one(matrix, false, [16, 128, 128]), [0; 3]);
            assert_eq!(one(matrix, false, [235, 128, 128]), [255; 3]);
            assert_eq!(one(matrix, false, [255, 128, 128]), [255; 3]);
            for level in [0, 1, 100, 255] {
                assert_eq!(one(matrix, true, [level, 128, 128]), [level; 3]);
            }
        }
    }

    #[test]
    fn a_row_of_odd_width_ends_with_half_a_pair() {
        let (y, u, v) = ([50; 9], [90, 100, 110, 120], [130, 140, 150, 160]);
        let picture = |chroma, width: usize, height, strides| Planes {
            width,
            height,
            chroma,
            planes: [&y[..], &u, &v],
            strides,
            matrix: Matrix::Bt601,
            full_range: true,
        };
        let frame = to_rgb(&picture(Chroma::Quarter, 3, 3, [3, 2]));
        assert_eq!(frame.pixels.len(), 27);
        assert_eq!(frame.pixels[..3], frame.pixels[3..6]);
        assert_eq!(frame.pixels[6..9], one(Matrix::Bt601, true, [50, 100, 140]));
        assert_eq!(frame.pixels[24..], one(Matrix::Bt601, true, [50, 120, 160]));
        assert!(!picture(Chroma::Quarter, 4, 3, [4, 2]).whole());
        assert!(!picture(Chroma::Full, 3, 3, [3, 3]).whole());
    }
}
