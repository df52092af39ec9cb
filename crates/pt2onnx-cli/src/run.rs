//! `pt2onnx run`: runs a model in ONNX Runtime and shows or writes its outputs.

use crate::{
    args::{Run, Running},
    error::{self, Code, CommandError},
    output::{print, print_json},
};
use pt2onnx::{
    Dim, Error, InputType, OptionError, RunError, Session, SessionOptions, Spelling, as_doubles,
    fx::archive::{Archive, SampleInput},
    load_ort, random_inputs, read_arrays,
    tensor::{DType, Tensor},
    to_npz, to_safetensors,
    writer::{Batch, Inputs},
};
use serde_json::json;
use std::{
    collections::{BTreeSet, HashMap},
    path::Path,
};

/// Outputs of more elements are summed up.
const SHOWN: usize = 12;

/// Runs the model; prints a line for each output, or JSON.
pub fn run(args: &Run) -> Result<(), CommandError> {
    let mut session = open(&args.model, &args.running)?;
    let (inputs, _) = inputs(&session, &args.running)?;
    let results = session.run(&inputs)?;
    let names: Vec<String> = session.output_names().map(str::to_owned).collect();
    if let Some(path) = &args.output {
        let all = names.iter().zip(&results);
        let npz = path.extension().is_some_and(|e| e == "npz");
        let bytes = if npz { to_npz(all) } else { to_safetensors(all) };
        let bytes = bytes.map_err(|e| CommandError::new(Code::Output, e.to_string()))?;
        let mut read = Inputs::new();
        [Some(&args.model), args.running.inputs.as_ref(), args.running.archive.as_ref()]
            .into_iter()
            .flatten()
            .for_each(|path| read.add("input", path));
        let mut files = Batch::new(read);
        files.file("outputs", path, &bytes).map_err(Error::Write)?;
        files.commit().map_err(Error::Write)?;
    }
    if args.running.json {
        let outputs = names.iter().zip(&results).map(|(name, tensor)| {
            let elements = as_doubles(tensor).filter(|all| all.len() <= SHOWN);
            json!({ "name": name, "dtype": tensor.dtype().to_string(), "shape": tensor.shape(), "elements": elements })
        });
        return print_json(&json!({ "outputs": outputs.collect::<Vec<_>>() }), true);
    }
    let lines =
        names.iter().zip(&results).map(|(name, tensor)| format!("{name}: {}\n", shown(tensor)));
    print(&lines.collect::<String>())
}

/// Loads the model as its file has it.
pub fn open(model: &Path, running: &Running) -> Result<Session, CommandError> {
    if let Some(library) = &running.ort {
        load_ort(library)?;
    }
    if let Err(e) = pt2onnx::tensor::open(model)
        && !model.is_dir()
    {
        let what = format!("the file cannot be read: {e}");
        return Err(CommandError::new(Code::Input, what).place(model.display()));
    }
    // The file may not be a model at all.
    Session::open(model, &SessionOptions::default(), &[]).map_err(|e| {
        error::not_onnx(model).unwrap_or_else(|| CommandError::from(e).place(model.display()))
    })
}

/// The inputs for the model, and where they come from.
pub fn inputs(
    session: &Session,
    running: &Running,
) -> Result<(Vec<Tensor>, &'static str), CommandError> {
    let types = session.inputs()?;
    let inputs = match (&running.inputs, &running.archive) {
        (Some(file), _) => {
            let names: Vec<&str> = types.iter().map(|input| input.name.as_str()).collect();
            (by_name(file, "input", &names)?, "the given inputs")
        }
        (None, Some(archive)) => (samples(archive, &types)?, "the archive's sample inputs"),
        (None, None) => (random(&types, running)?, "random inputs"),
    };
    fit(&types, &inputs.0).map_err(|error| match &running.archive {
        Some(archive) if running.inputs.is_none() => {
            error.place(format_args!("sample inputs of {}", archive.display()))
        }
        _ => error,
    })?;
    Ok(inputs)
}

/// The arrays of a file, in the order of the names.
pub fn by_name(file: &Path, what: &str, names: &[&str]) -> Result<Vec<Tensor>, CommandError> {
    Ok(with_others(file, what, names)?.0)
}

/// The arrays of a file, in the order of the names; and the names of its other arrays, but those
/// that are numbered as something else.
pub fn with_others(
    file: &Path,
    what: &str,
    names: &[&str],
) -> Result<(Vec<Tensor>, Vec<String>), CommandError> {
    let mut arrays = read_arrays(file).map_err(|e| error::arrays(e, file))?;
    let numbered = |start: &str, i: usize| format!("{start}{i}");
    let spellings: [&dyn Fn(usize) -> String; 3] = [
        &|i| names.get(i).map_or_else(String::new, |name| (*name).to_owned()),
        &|i| numbered(&format!("{what}."), i),
        &|i| numbered("arr_", i),
    ];
    for spelling in spellings {
        if (0..names.len()).all(|i| arrays.contains_key(&spelling(i))) {
            let found = (0..names.len()).filter_map(|i| arrays.shift_remove(&spelling(i)));
            let found = found.collect();
            let numbered = spelling(0).strip_suffix('0').map(str::to_owned);
            let start = numbered.filter(|_| !names.contains(&&*spelling(0))).unwrap_or_default();
            let others = arrays.into_keys().filter(|name| name.starts_with(&start));
            return Ok((found, others.collect()));
        }
    }
    let missing: Vec<&str> = names.iter().copied().filter(|n| !arrays.contains_key(*n)).collect();
    let has: Vec<&str> = arrays.keys().map(String::as_str).collect();
    let plural = if missing.len() == 1 { "" } else { "s" };
    let said = format!("the file does not have the {what}{plural} {}", missing.join(", "));
    let has = if has.is_empty() { "no arrays".to_owned() } else { has.join(", ") };
    let help =
        format!("it has {has}; name its arrays as the model's {what}s, or {what}.0, {what}.1, ...");
    Err(CommandError::new(Code::Usage, said).place(file.display()).help(help))
}

/// The arguments of the export that became inputs.
fn samples(path: &Path, types: &[InputType]) -> Result<Vec<Tensor>, CommandError> {
    let missing = |what: String| {
        CommandError::new(Code::Input, what)
            .place(path.display())
            .help("give the inputs with `--inputs FILE`")
    };
    let archive = Archive::open(path).map_err(Error::Archive)?;
    let all = archive.sample_inputs(None);
    let all = all.map_err(|e| missing(format!("the sample inputs cannot be read: {e}")))?;
    let all = all.ok_or_else(|| missing("the archive has no sample inputs".to_owned()))?;
    // Numbers are inputs only if they are dynamic.
    for numbers in [false, true] {
        let taken: Vec<&SampleInput> = all
            .iter()
            .filter(|leaf| match leaf {
                SampleInput::Tensor(_) => true,
                SampleInput::Int(_) | SampleInput::Float(_) => numbers,
                _ => false,
            })
            .collect();
        if taken.len() == types.len() {
            let pairs = taken.into_iter().zip(types);
            let tensors = pairs.map(|(leaf, input)| match (leaf, input.dtype) {
                (SampleInput::Tensor(tensor), _) => tensor.clone(),
                (SampleInput::Float(x), _) => Tensor::scalar(*x),
                (SampleInput::Int(i), DType::Bool) => Tensor::scalar(*i != 0),
                (SampleInput::Int(i), _) => Tensor::scalar(*i),
                _ => Tensor::scalar(0i64),
            });
            return Ok(tensors.collect());
        }
    }
    let (has, needs) = (all.len(), types.len());
    Err(missing(format!("the archive has {has} sample inputs, the model takes {needs}")))
}

fn random(types: &[InputType], running: &Running) -> Result<Vec<Tensor>, CommandError> {
    let usage = |what: String| CommandError::new(Code::Usage, what);
    let known = symbols(types);
    let mut types = types.to_vec();
    OptionError::once(Spelling::Flag.text("{fix-dim}"), &running.fix_dim)?;
    let mut sizes = HashMap::new();
    for (given, size) in &running.fix_dim {
        let size =
            usize::try_from(*size).map_err(|_| usage(format!("`{given}` cannot be negative")))?;
        match axis(&mut types, given) {
            // An axis without a name has a separate size.
            Some(Dim::Symbol(name)) if !name.is_empty() => {
                sizes.insert(name.clone(), size);
            }
            Some(dim) => *dim = Dim::Size(size),
            None if known.contains(given) => {
                sizes.insert(given.clone(), size);
            }
            None => return Err(no_dimension(&types, given)),
        }
    }
    let types = &types;
    Ok(random_inputs(types, running.seed, |name| sizes.get(name).copied().unwrap_or(2))?)
}

/// The dimension that `INPUT.AXIS` means, if it is dynamic.
fn axis<'a>(types: &'a mut [InputType], given: &str) -> Option<&'a mut Dim> {
    let (name, axis) = given.rsplit_once('.')?;
    let input = types.iter_mut().find(|input| input.name == name)?;
    let dim = input.dims.get_mut(axis.parse::<usize>().ok()?)?;
    matches!(dim, Dim::Symbol(_)).then_some(dim)
}

/// The names of dynamic dimensions.
fn symbols(types: &[InputType]) -> BTreeSet<String> {
    let dims = types.iter().flat_map(|input| &input.dims);
    let names = dims.filter_map(|dim| match dim {
        Dim::Symbol(name) if !name.is_empty() => Some(name.clone()),
        _ => None,
    });
    names.collect()
}

fn no_dimension(types: &[InputType], given: &str) -> CommandError {
    let names = Vec::from_iter(symbols(types));
    let unnamed = types.iter().flat_map(|input| {
        let open = input.dims.iter().enumerate();
        let open = open.filter(|(_, dim)| matches!(dim, Dim::Symbol(name) if name.is_empty()));
        open.map(|(axis, _)| format!("{}.{axis}", input.name))
    });
    let all: Vec<String> = names.into_iter().chain(unnamed).collect();
    let help = if all.is_empty() {
        "all sizes of its inputs are fixed".to_owned()
    } else {
        format!("the dynamic dimensions of its inputs are: {}", all.join(", "))
    };
    CommandError::new(Code::Usage, format!("the model has no dynamic dimension `{given}`"))
        .help(help)
}

/// Whether the inputs take these tensors.
pub fn fit(types: &[InputType], tensors: &[Tensor]) -> Result<(), CommandError> {
    if types.len() != tensors.len() {
        let names = types.iter().map(|input| input.name.clone()).collect();
        return Err(RunError::Inputs { given: tensors.len(), names }.into());
    }
    let misfit = types.iter().zip(tensors).find_map(|(input, tensor)| fits(input, tensor).err());
    misfit.map_or(Ok(()), |what| Err(CommandError::new(Code::Usage, what)))
}

/// Whether an input takes this tensor.
fn fits(input: &InputType, tensor: &Tensor) -> Result<(), String> {
    let dims: Vec<String> = input
        .dims
        .iter()
        .map(|dim| match dim {
            Dim::Size(size) => size.to_string(),
            Dim::Symbol(name) if name.is_empty() => "?".to_owned(),
            Dim::Symbol(name) => name.clone(),
        })
        .collect();
    let sizes = input.dims.iter().zip(tensor.shape());
    let fit = input.dims.len() == tensor.rank()
        && sizes.clone().all(|(dim, size)| !matches!(dim, Dim::Size(fixed) if fixed != size));
    if fit && input.dtype == tensor.dtype() {
        Ok(())
    } else {
        Err(format!(
            "the input {} takes {}[{}], but {}{:?} is given",
            input.name,
            input.dtype,
            dims.join(", "),
            tensor.dtype(),
            tensor.shape()
        ))
    }
}

/// Type and elements; of many elements, their range.
fn shown(tensor: &Tensor) -> String {
    let ty = format!("{}{:?}", tensor.dtype(), tensor.shape());
    let Some(all) = as_doubles(tensor) else { return ty };
    if all.len() <= SHOWN {
        let all: Vec<String> = all.iter().map(f64::to_string).collect();
        return format!("{ty} = {}", all.join(", "));
    }
    let finite: Vec<f64> = all.iter().copied().filter(|x| x.is_finite()).collect();
    let range = if finite.is_empty() {
        "no finite numbers".to_owned()
    } else {
        let least = finite.iter().copied().fold(f64::INFINITY, f64::min);
        let most = finite.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let mean = finite.iter().sum::<f64>() / finite.len() as f64;
        format!("from {least:.6} to {most:.6}, mean {mean:.6}")
    };
    match all.len() - finite.len() {
        0 => format!("{ty}, {range}"),
        others => format!("{ty}, {range}, {others} NaN or infinite"),
    }
}

impl From<RunError> for CommandError {
    fn from(error: RunError) -> Self {
        let code = match error {
            RunError::Inputs { .. } | RunError::Input { .. } | RunError::Outputs { .. } => {
                Code::Usage
            }
            _ => Code::Runtime,
        };
        CommandError::new(code, error.to_string())
    }
}
