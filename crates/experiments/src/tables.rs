//! One table of fragments for each device and precision, shared by all phases of a run: standardising and uploading a
//! dataset is done once, and every further request is a few reference counts.

use std::sync::{Mutex, PoisonError};

use candle_core::{Device, DeviceLocation};
use models::{FragmentTable, Precision, Scales, TableOptions};

use crate::error::Result;
use crate::source::Source;

/// The tables of one dataset that have been laid out so far.
#[derive(Default)]
pub(crate) struct Tables(Mutex<Vec<Laid>>);

struct Laid {
    location: DeviceLocation,
    precision: Precision,
    discount: f64,
    table: FragmentTable,
}

impl Tables {
    /// The dataset on a device in some scales, with returns to go under `discount`.
    pub(crate) fn get(
        &self,
        source: &Source,
        scales: Scales,
        device: &Device,
        precision: Precision,
        discount: f64,
    ) -> Result<FragmentTable> {
        let location = device.location();
        let mut laid = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let same =
            |one: &&Laid| one.location == location && one.precision == precision && *one.table.scales() == scales;
        if let Some(known) = laid.iter().find(same) {
            return match known.discount == discount {
                true => Ok(known.table.clone()),
                false => Ok(known.table.with_discount(&source.dataset, discount)?),
            };
        }
        let options = TableOptions { device: device.clone(), precision, discount };
        let table = FragmentTable::new(&source.dataset, &source.caches, scales, &options)?;
        laid.push(Laid { location, precision, discount, table: table.clone() });
        Ok(table)
    }

    /// How many tables were laid out.
    pub(crate) fn count(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}
