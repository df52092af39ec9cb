//! Names of nodes and values.

use smol_str::SmolStr;

/// Name of a node or value: an FX name, unique in its graph. Cheap to clone; a short one lies in place.
pub type Name = SmolStr;
