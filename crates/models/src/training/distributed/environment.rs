//! Who is who: the variables of `torchrun`, or those of Slurm.

use crate::error::{Error, Result};

/// Where PyTorch's programs meet if nobody says where.
const PORT: u16 = 29500;

/// One process among those of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Environment {
    /// Which one it is, from zero.
    pub rank: usize,
    /// How many there are.
    pub world: usize,
    /// Which one it is on its machine: the number of its GPU.
    pub local_rank: usize,
    /// The first rank's machine.
    pub address: String,
    /// The port there where all meet.
    pub port: u16,
}

impl Environment {
    /// From the variables of this process; none if it was not started as one of several.
    pub fn from_process() -> Result<Option<Environment>> {
        Environment::from_variables(|name| std::env::var(name).ok())
    }

    /// From variables by name. `torchrun` sets `RANK`, `WORLD_SIZE`, `LOCAL_RANK`, `MASTER_ADDR` and `MASTER_PORT`.
    /// Slurm's `srun` sets `SLURM_PROCID`, `SLURM_NTASKS` and `SLURM_LOCALID`; the first host of `SLURM_NODELIST` is
    /// where ranks meet, at a port that follows from `SLURM_JOB_ID`, unless `MASTER_ADDR` and `MASTER_PORT` say
    /// otherwise.
    pub fn from_variables(lookup: impl Fn(&str) -> Option<String>) -> Result<Option<Environment>> {
        let variables = Variables { lookup: &lookup, wrong: Vec::new() };
        if variables.has("RANK") || variables.has("WORLD_SIZE") {
            variables.torchrun().map(Some)
        } else if variables.has("SLURM_PROCID") {
            variables.slurm().map(Some)
        } else {
            Ok(None)
        }
    }
}

struct Variables<'a> {
    lookup: &'a dyn Fn(&str) -> Option<String>,
    wrong: Vec<String>,
}

impl Variables<'_> {
    fn torchrun(mut self) -> Result<Environment> {
        let rank = self.number("RANK");
        let world = self.number("WORLD_SIZE");
        let alone = world == 1;
        let local_rank = if alone && !self.has("LOCAL_RANK") { 0 } else { self.number("LOCAL_RANK") };
        let address = if alone { self.text("MASTER_ADDR").unwrap_or_default() } else { self.needed("MASTER_ADDR") };
        let port = if alone && !self.has("MASTER_PORT") { PORT } else { self.port() };
        self.finish(Environment { rank, world, local_rank, address, port }, ["RANK", "WORLD_SIZE", "LOCAL_RANK"])
    }

    fn slurm(mut self) -> Result<Environment> {
        let rank = self.number("SLURM_PROCID");
        let world = self.number("SLURM_NTASKS");
        let local_rank = self.number("SLURM_LOCALID");
        let address = match self.text("MASTER_ADDR") {
            Some(address) => address,
            None if world == 1 => String::new(),
            None => {
                let hosts = self.text("SLURM_NODELIST").or_else(|| self.text("SLURM_JOB_NODELIST")).unwrap_or_default();
                first_host(&hosts).unwrap_or_else(|| {
                    let found = if hosts.is_empty() { "is not set".to_owned() } else { format!("is `{hosts}`") };
                    self.wrong.push(format!(
                        "`SLURM_NODELIST` {found}, wanted hosts such as `node[01-04]`, or `MASTER_ADDR`"
                    ));
                    String::new()
                })
            }
        };
        let port = if self.has("MASTER_PORT") {
            self.port()
        } else {
            // Jobs that share a machine should not meet at one port.
            let job = self.text("SLURM_JOB_ID").and_then(|job| job.parse::<u64>().ok());
            job.map_or(PORT, |job| 20_000 + (job % 20_000) as u16)
        };
        let names = ["SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"];
        self.finish(Environment { rank, world, local_rank, address, port }, names)
    }

    fn finish(mut self, found: Environment, [rank, world, local_rank]: [&str; 3]) -> Result<Environment> {
        if self.wrong.is_empty() {
            if found.rank >= found.world {
                self.wrong.push(format!("`{rank}` is {}, wanted less than `{world}`, {}", found.rank, found.world));
            }
            if found.local_rank > found.rank {
                let wanted = format!("wanted no more than `{rank}`, {}", found.rank);
                self.wrong.push(format!("`{local_rank}` is {}, {wanted}", found.local_rank));
            }
        }
        if self.wrong.is_empty() {
            return Ok(found);
        }
        let wrong = self.wrong.join("; ");
        Err(Error::Config(format!(
            "this process was started as one of several, but {wrong}; start all with `torchrun` or \
             `srun`, or unset these variables"
        )))
    }

    fn has(&self, name: &str) -> bool {
        self.text(name).is_some()
    }

    fn text(&self, name: &str) -> Option<String> {
        (self.lookup)(name).map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
    }

    fn needed(&mut self, name: &str) -> String {
        self.text(name).unwrap_or_else(|| {
            self.wrong.push(format!("`{name}` is not set"));
            String::new()
        })
    }

    fn number(&mut self, name: &str) -> usize {
        let text = self.needed(name);
        if text.is_empty() {
            return 0;
        }
        text.parse().unwrap_or_else(|_| {
            self.wrong.push(format!("`{name}` is `{text}`, wanted a number"));
            0
        })
    }

    fn port(&mut self) -> u16 {
        let text = self.needed("MASTER_PORT");
        match text.parse() {
            Ok(port) if port > 0 => port,
            _ if text.is_empty() => PORT,
            _ => {
                self.wrong.push(format!("`MASTER_PORT` is `{text}`, wanted a number from 1 to 65535"));
                PORT
            }
        }
    }
}

/// The first of a list such as `node[01-04,07],other`.
fn first_host(hosts: &str) -> Option<String> {
    let end = hosts.find([',', '[']).unwrap_or(hosts.len());
    let (prefix, rest) = hosts.split_at(end);
    let host = match rest.strip_prefix('[') {
        None => prefix.to_owned(),
        Some(rest) => {
            let (inside, after) = rest.split_once(']')?;
            let number = inside.split([',', '-']).next().filter(|number| !number.is_empty())?;
            let suffix = after.split(',').next().unwrap_or_default();
            // A second bracket, of hosts with two numbers, is more than the simple form.
            if suffix.contains('[') {
                return None;
            }
            format!("{prefix}{number}{suffix}")
        }
    };
    Some(host).filter(|host| !host.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(variables: &[(&str, &str)]) -> Result<Option<Environment>> {
        let lookup =
            |name: &str| variables.iter().find(|(found, _)| *found == name).map(|(_, value)| (*value).to_owned());
        Environment::from_variables(lookup)
    }

    #[test]
    fn nothing_set_is_one_process() {
        assert_eq!(find(&[]).unwrap(), None);
        assert_eq!(find(&[("MASTER_ADDR", "a"), ("SLURM_NTASKS", "4")]).unwrap(), None);
    }

    #[test]
    fn torchrun_says_who_is_who() {
        let found = find(&[
            ("RANK", "5"),
            ("WORLD_SIZE", "8"),
            ("LOCAL_RANK", "1"),
            ("MASTER_ADDR", "10.0.0.1"),
            ("MASTER_PORT", "29400"),
        ]);
        let wanted = Environment { rank: 5, world: 8, local_rank: 1, address: "10.0.0.1".into(), port: 29400 };
        assert_eq!(found.unwrap(), Some(wanted));
    }

    #[test]
    fn what_is_missing_or_inconsistent_is_named_at_once() {
        let message = find(&[("RANK", "1"), ("WORLD_SIZE", "two")]).unwrap_err().to_string();
        for part in ["`WORLD_SIZE` is `two`", "`LOCAL_RANK` is not set", "`MASTER_ADDR` is not", "`MASTER_PORT` is not"]
        {
            assert!(message.contains(part), "{part} in {message}");
        }
        let all = [("LOCAL_RANK", "2"), ("MASTER_ADDR", "a"), ("MASTER_PORT", "1")];
        let message = find(&[&all[..], &[("RANK", "2"), ("WORLD_SIZE", "2")]].concat()).unwrap_err().to_string();
        assert!(message.contains("`RANK` is 2, wanted less than `WORLD_SIZE`, 2"), "{message}");
        let message = find(&[&all[..], &[("RANK", "1"), ("WORLD_SIZE", "2")]].concat()).unwrap_err().to_string();
        assert!(message.contains("`LOCAL_RANK` is 2"), "{message}");
    }

    #[test]
    fn slurm_meets_at_the_first_host() {
        let slurm = [
            ("SLURM_PROCID", "3"),
            ("SLURM_NTASKS", "4"),
            ("SLURM_LOCALID", "1"),
            ("SLURM_NODELIST", "gpu[07-08,11],login"),
            ("SLURM_JOB_ID", "123456"),
        ];
        let wanted = Environment { rank: 3, world: 4, local_rank: 1, address: "gpu07".into(), port: 23456 };
        assert_eq!(find(&slurm).unwrap(), Some(wanted.clone()));
        let said = [&slurm[..], &[("MASTER_ADDR", "b"), ("MASTER_PORT", "99")]].concat();
        assert_eq!(find(&said).unwrap(), Some(Environment { address: "b".into(), port: 99, ..wanted }));
        let message = find(&slurm[..3]).unwrap_err().to_string();
        assert!(message.contains("`SLURM_NODELIST` is not set"), "{message}");
    }

    #[test]
    fn lists_of_hosts() {
        let cases = [("a", "a"), ("a,b", "a"), ("n[3]", "n3"), ("n[003-9].x,m", "n003.x"), ("n[1,5-7]", "n1")];
        for (list, wanted) in cases {
            assert_eq!(first_host(list).as_deref(), Some(wanted), "{list}");
        }
        for list in ["", "n[", "n[]", "r[1-2]n[3-4]"] {
            assert_eq!(first_host(list), None, "{list}");
        }
    }
}
