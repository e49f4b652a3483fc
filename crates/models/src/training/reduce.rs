//! The gradients of a step over all its parts: summed in the order of parts on a rank, then in the order of ranks, then
//! divided by their count.
//!
//! With several ranks, gradients go out in buckets as soon as the backward pass of the last part has them, while it
//! goes on. The order in which they become ready is that of the graph, so it is the same on all ranks. A parameter that
//! has gradients of both kinds, found by Candle and handed over, is summed in two pieces over ranks: for it alone ranks
//! and parts agree to rounding, not to the bit.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use candle_core::backprop::GradStore;
use candle_core::{DType, Tensor};

use super::distributed::Transport;
use crate::error::{Error, Result};
use crate::noise;
use crate::parameters::Parameters;

/// Bytes of a bucket: large enough for the network, small enough to start early.
const BUCKET: usize = 25 << 20;

/// Gathers the gradients of a step.
pub(super) struct Reducer {
    transport: Arc<dyn Transport>,
    /// Bytes after which a bucket goes out.
    bucket: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Sums over the parts before the last.
    earlier: Vec<Option<Tensor>>,
    /// Which parameters' gradients the hook has handed over in this step.
    handed: Vec<bool>,
    /// What the next bucket holds.
    filling: Vec<(usize, Tensor)>,
    bytes: usize,
    /// What the buckets hold that are on their way: index and shape of each gradient.
    begun: Vec<Vec<(usize, Vec<usize>)>>,
}

impl Reducer {
    pub(super) fn new(transport: Arc<dyn Transport>) -> Arc<Reducer> {
        Reducer::with_bucket(transport, BUCKET)
    }

    fn with_bucket(transport: Arc<dyn Transport>, bucket: usize) -> Arc<Reducer> {
        Arc::new(Reducer { transport, bucket, state: Mutex::default() })
    }

    /// Adds what the backward pass of a part before the last found.
    pub(super) fn add_part(&self, parameters: &Parameters, found: &GradStore) -> Result<()> {
        let gradients = parameters.gradients(found)?;
        let mut state = self.lock();
        let earlier = std::mem::take(&mut state.earlier);
        state.earlier = sums(earlier, gradients)?;
        Ok(())
    }

    /// Before the backward pass of the last part: from now on gradients go out as they become final.
    pub(super) fn begin_last(self: &Arc<Self>, parameters: &Parameters) {
        if self.transport.world() > 1 {
            self.lock().handed = vec![false; parameters.len()];
            let reducer = self.clone();
            let names: Vec<String> = parameters.iter().map(|one| one.name().to_owned()).collect();
            parameters.set_gradient_hook(Some(Box::new(move |index, gradient| {
                let mut state = reducer.lock();
                if std::mem::replace(&mut state.handed[index], true) {
                    return Err(Error::Config(format!(
                        "a gradient of `{}` came after its last one; `expect_gradient` \
                         announces each in the forward pass",
                        names[index]
                    )));
                }
                let earlier = state.earlier.get_mut(index).and_then(Option::take);
                reducer.send(&mut state, index, sum(earlier, Some(gradient.clone()))?)
            })));
        }
    }

    /// After it: the mean over all parts of all ranks.
    pub(super) fn finish(
        &self,
        parameters: &Parameters,
        found: &GradStore,
        parts: usize,
    ) -> Result<Vec<Option<Tensor>>> {
        parameters.set_gradient_hook(None);
        let gradients = parameters.gradients(found)?;
        let mut state = std::mem::take(&mut *self.lock());
        if parts == 1 {
            return Ok(gradients);
        }
        let scale = 1.0 / parts as f64;
        if self.transport.world() == 1 {
            let scaled = |gradient: Option<Tensor>| {
                gradient.map(|gradient| Ok((gradient.to_dtype(DType::F32)? * scale)?)).transpose()
            };
            return sums(state.earlier, gradients)?.into_iter().map(scaled).collect();
        }
        state.earlier.resize(parameters.len(), None);
        for ((parameter, gradient), earlier) in parameters.iter().zip(gradients).zip(std::mem::take(&mut state.earlier))
        {
            let index = parameter.index();
            // Of a gradient that the hook has sent, only what Candle found besides is left.
            let rest = match state.handed[index] {
                true => found.get(parameter.master().as_tensor()).map(Tensor::detach),
                false => gradient,
            };
            self.send(&mut state, index, sum(earlier, rest)?)?;
        }
        self.send_bucket(&mut state)?;
        let mut means = vec![None; parameters.len()];
        for (bucket, contents) in self.transport.finish_sums()?.into_iter().zip(state.begun) {
            let bucket = (bucket * scale)?;
            let mut at = 0;
            for (index, shape) in contents {
                let length = shape.iter().product();
                let mean = bucket.narrow(0, at, length)?.reshape(shape)?;
                at += length;
                means[index] = sum(means[index].take(), Some(mean))?;
            }
        }
        Ok(means)
    }

    fn send(&self, state: &mut State, index: usize, gradient: Option<Tensor>) -> Result<()> {
        let Some(gradient) = gradient else { return Ok(()) };
        state.bytes += gradient.elem_count() * 4;
        state.filling.push((index, gradient));
        if state.bytes >= self.bucket { self.send_bucket(state) } else { Ok(()) }
    }

    fn send_bucket(&self, state: &mut State) -> Result<()> {
        let filling = std::mem::take(&mut state.filling);
        state.bytes = 0;
        if filling.is_empty() {
            return Ok(());
        }
        let flat = |(_, gradient): &(usize, Tensor)| gradient.to_dtype(DType::F32)?.flatten_all();
        let flat: std::result::Result<Vec<Tensor>, candle_core::Error> = filling.iter().map(flat).collect();
        let contents: Vec<_> = filling.iter().map(|(index, gradient)| (*index, gradient.dims().to_vec())).collect();
        let label = noise::mix(state.begun.len() as u64, format!("{contents:?}").as_bytes());
        state.begun.push(contents);
        // One gradient alone would not be copied, and sums are taken in place.
        let bucket = match flat?.as_slice() {
            [one] => one.copy()?,
            many => Tensor::cat(many, 0)?,
        };
        self.transport.begin_sum(label, bucket)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn sums(left: Vec<Option<Tensor>>, right: Vec<Option<Tensor>>) -> Result<Vec<Option<Tensor>>> {
    let mut left = left;
    left.resize(right.len(), None);
    left.into_iter().zip(right).map(|(left, right)| sum(left, right)).collect()
}

/// In f32 where there is something to add.
fn sum(left: Option<Tensor>, right: Option<Tensor>) -> Result<Option<Tensor>> {
    match (left, right) {
        (Some(left), Some(right)) => Ok(Some((left.to_dtype(DType::F32)? + right.to_dtype(DType::F32)?)?)),
        (left, right) => Ok(left.or(right)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameters::Init;
    use crate::{Parameter, Precision};
    use candle_core::Device;

    /// As if another rank had the same gradients.
    #[derive(Default)]
    struct Doubling(Mutex<Vec<Tensor>>);

    impl Transport for Doubling {
        fn rank(&self) -> usize {
            0
        }

        fn world(&self) -> usize {
            2
        }

        fn begin_sum(&self, _label: u64, values: Tensor) -> Result<()> {
            self.0.lock().unwrap().push((values * 2.0)?);
            Ok(())
        }

        fn finish_sums(&self) -> Result<Vec<Tensor>> {
            Ok(std::mem::take(&mut *self.0.lock().unwrap()))
        }

        fn broadcast(&self, values: Tensor) -> Result<Tensor> {
            Ok(values)
        }

        fn broadcast_bytes(&self, bytes: Vec<u8>) -> Result<Vec<u8>> {
            Ok(bytes)
        }

        fn exchange(&self, said: &[f64]) -> Result<Vec<Vec<f64>>> {
            Ok(vec![said.to_vec(); 2])
        }
    }

    fn model() -> (Parameters, [Parameter; 4]) {
        let mut parameters = Parameters::new(&Device::Cpu, Precision::F32, 0);
        let names = ["a", "b", "c", "unused"];
        let weights = names.map(|name| parameters.root().weight(name, &[3], Init::Ones).unwrap());
        (parameters, weights)
    }

    fn tensor(values: [f32; 3]) -> Tensor {
        Tensor::new(&values, &Device::Cpu).unwrap()
    }

    #[test]
    fn buckets_go_out_while_the_backward_pass_goes_on() {
        let (parameters, [a, b, c, _]) = model();
        let transport = Arc::new(Doubling::default());
        let reducer = Reducer::with_bucket(transport.clone(), 24);
        // Candle finds b's gradient, and a part of a's; the rest is handed over.
        let found = || {
            let loss = (a.tracked_f32() + (b.tracked_f32() * 2.0).unwrap()).unwrap().sum_all().unwrap();
            loss.backward().unwrap()
        };
        reducer.add_part(&parameters, &found()).unwrap();
        reducer.begin_last(&parameters);
        c.expect_gradient();
        c.expect_gradient();
        c.add_gradient(tensor([1.0, 2.0, 3.0])).unwrap();
        a.add_gradient(tensor([10.0, 20.0, 30.0])).unwrap();
        assert_eq!(transport.0.lock().unwrap().len(), 0, "c is not final, a alone fills no bucket");
        c.add_gradient(tensor([1.0, 2.0, 3.0])).unwrap();
        assert_eq!(transport.0.lock().unwrap().len(), 1);
        let means = reducer.finish(&parameters, &found(), 4).unwrap();
        let means: Vec<Option<Vec<f32>>> =
            means.iter().map(|mean| mean.as_ref().map(|mean| mean.to_vec1().unwrap())).collect();
        // Two ranks with two parts each: the sum of a rank's parts, halved.
        assert_eq!(means[0].as_deref(), Some(&[6.0, 11.0, 16.0][..]));
        assert_eq!(means[1].as_deref(), Some(&[2.0, 2.0, 2.0][..]));
        assert_eq!(means[2].as_deref(), Some(&[1.0, 2.0, 3.0][..]));
        assert_eq!(means[3], None);
    }

    #[test]
    fn a_gradient_that_was_not_announced_is_an_error() {
        let (parameters, [a, ..]) = model();
        let reducer = Reducer::with_bucket(Arc::new(Doubling::default()), 24);
        reducer.begin_last(&parameters);
        a.add_gradient(tensor([1.0; 3])).unwrap();
        let error = a.add_gradient(tensor([1.0; 3])).unwrap_err().to_string();
        assert!(error.contains("`a`") && error.contains("expect_gradient"), "{error}");
    }
}
