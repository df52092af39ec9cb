//! Flags of options, for commands that are built with clap.

use super::{Choice, FlagKind, OptionMeta, OptionValue, Options, declare::Assign};
use clap::{
    Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches,
    builder::{NonEmptyStringValueParser, PossibleValue, PossibleValuesParser, TypedValueParser},
    error::ErrorKind,
};
use serde_json::Value;
use std::fmt;

impl<O: Default> OptionMeta<O> {
    /// The flag. `defaults` is the serialised form of all defaults, for the help text.
    pub fn arg(&'static self, defaults: &Value) -> Arg {
        let mut help = self.summary();
        if matches!(self.flag, FlagKind::Many | FlagKind::Listed) {
            help += "; can be given several times";
        }
        if let Some(default) = self.default_text(defaults) {
            help += &format!(" [default: {default}]");
        }
        let arg = Arg::new(self.key).long(self.key).aliases(self.aliases).help(help);
        let arg = arg.help_heading(self.heading);
        let placeholder = || self.key.to_uppercase().replace('-', "_");
        let arg = arg.value_name(self.value_name.map_or_else(placeholder, str::to_owned));
        let arg = match self.flag {
            FlagKind::Switch => return arg.action(ArgAction::SetTrue),
            FlagKind::One => arg.action(ArgAction::Set),
            FlagKind::Many => arg.action(ArgAction::Append),
            FlagKind::Listed => arg.action(ArgAction::Append).value_delimiter(','),
        };
        // `-1` is a value, and refused by name.
        let arg = arg.allow_negative_numbers(true);
        let choices = (self.choices)();
        if choices.is_empty() {
            let read = move |text: String| (self.read)(&[&text]).map(|_| text);
            arg.value_parser(NonEmptyStringValueParser::new().try_map(read))
        } else {
            arg.value_parser(possible_values(choices))
        }
    }
}

/// Takes the words of a type, but for some.
pub fn words<T: Choice>(but: &[&str]) -> impl TypedValueParser<Value = T>
where
    T::Err: std::error::Error + Send + Sync,
{
    let words = <T as OptionValue>::choices().into_iter();
    let words = words.filter(|(word, _)| !but.contains(&word.as_str()));
    possible_values(words.collect()).try_map(|word| word.parse())
}

fn possible_values(words: Vec<(String, String)>) -> PossibleValuesParser {
    let value = |(word, help): (String, String)| PossibleValue::new(word).help(help);
    PossibleValuesParser::new(words.into_iter().map(value))
}

/// The flags of a [`Task`](super::Task):
/// `#[command(flatten)] flags: Flags<{ Task::Convert as u8 }>`.
pub struct Flags<const TASK: u8>(Vec<Given>);

/// A flag that was given.
struct Given {
    key: &'static str,
    texts: Vec<String>,
    change: Assign<Options>,
}

impl<const TASK: u8> fmt::Debug for Flags<TASK> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.0.iter().map(|given| (given.key, &given.texts))).finish()
    }
}

impl<const TASK: u8> Flags<TASK> {
    fn options() -> impl Iterator<Item = &'static OptionMeta<Options>> {
        Options::META.iter().filter(|option| option.tasks.iter().any(|task| *task as u8 == TASK))
    }

    /// The key of the first option that is given.
    pub fn first(&self) -> Option<&'static str> {
        self.0.first().map(|given| given.key)
    }

    /// Whether an option is given.
    pub fn has(&self, key: &str) -> bool {
        self.0.iter().any(|given| given.key == key)
    }

    /// Puts the given values into options.
    pub fn put(self, options: &mut Options) {
        self.0.into_iter().for_each(|given| (given.change)(options));
    }
}

impl<const TASK: u8> Args for Flags<TASK> {
    fn augment_args(command: Command) -> Command {
        let defaults = serde_json::to_value(Options::default()).unwrap_or_default();
        command.args(Self::options().map(|option| option.arg(&defaults)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<const TASK: u8> FromArgMatches for Flags<TASK> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let mut all = Vec::new();
        for option in Self::options() {
            let given = option.flag != FlagKind::Switch || matches.get_flag(option.key);
            let texts = match option.flag {
                FlagKind::Switch => Vec::new(),
                _ => matches.get_many(option.key).into_iter().flatten().cloned().collect(),
            };
            if given && (option.flag == FlagKind::Switch || !texts.is_empty()) {
                let borrowed: Vec<&str> = texts.iter().map(String::as_str).collect();
                let change = (option.read)(&borrowed)
                    .map_err(|error| Error::raw(ErrorKind::ValueValidation, error))?;
                all.push(Given { key: option.key, texts, change });
            }
        }
        Ok(Self(all))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
