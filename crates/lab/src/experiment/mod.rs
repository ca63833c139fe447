//! What is compared: the experiment file and the plan that follows from it.

mod model;

pub use model::{
    Arm, Batch, Comparison, DataPlan, Experiment, InstancePlan, LoadPlan, Role, TrialPlan, WarmupPlan,
};
