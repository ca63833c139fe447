//! The answer of a sizing, with what stands beside it.

use ebbtide_advisor::sizing::change::{self, ChangePlan};
use ebbtide_advisor::sizing::managed::{AuroraIo, Platform, platforms};
use ebbtide_advisor::sizing::{Asked, QueueRule, Sizing, Space, queue_rule, size};

use super::plan::SizingPlan;
use super::verify::{Verified, verify};

/// The volumes that carry a load, with what stands beside them.
#[derive(Debug)]
pub struct Answer<'a> {
    /// The choices by cost, the answer first.
    pub sizing: Sizing<'a>,
    /// The rules of the queue length; None where the queue is not known.
    pub queue_rule: Option<QueueRule>,
    /// The same load on EC2, RDS and Aurora; empty without an answer.
    pub platforms: Vec<Platform>,
    /// What the model of the server says of the choices, in their order; empty without a profile.
    pub verified: Vec<Verified>,
}

impl<'a> Answer<'a> {
    /// Searches, and checks the choices for a profile's server with its model.
    #[must_use]
    pub fn of(plan: &'a SizingPlan<'a>) -> Self {
        let prices = plan.prices();
        let instances = plan.instances();
        let asked = Asked {
            catalog: plan.catalog,
            prices,
            now: &plan.now,
            planned: &plan.planned,
            implied: plan.implied.as_ref(),
            objective: plan.objective,
            most_members: plan.most_members,
            arrays_asked: plan.arrays_asked,
            today: plan.today.as_ref(),
            past: plan.inputs.past.as_ref(),
            instance: plan.instance.as_ref(),
            instances: &instances,
        };
        let mut sizing = size(&asked);
        let latency = sizing.today.as_ref().and_then(|today| today.latency.clone());
        let space = Space {
            catalog: plan.catalog,
            prices,
            demand: &plan.planned,
            objective: plan.objective,
            most_members: plan.most_members,
            instance: sizing.instance,
            counts_allowance: false,
            too_little: asked.too_little(latency.as_ref()),
        };
        let verified = match &plan.source.server {
            Some(server) => verify(plan, server, &space, &mut sizing),
            None => Vec::new(),
        };
        // The log of a profile is that of the grown load already.
        let io = AuroraIo::of(&plan.grown(), plan.source.log_bytes);
        let platforms =
            sizing.choices.first().map(|best| platforms(&space, &best.volumes, io)).unwrap_or_default();
        Self { queue_rule: queue_rule(&plan.source.load), platforms, verified, sizing }
    }

    /// Whether there is an answer, and the figures of the load are no worse than it.
    #[must_use]
    pub fn is_sound(&self, plan: &SizingPlan<'_>) -> bool {
        let inputs = &plan.inputs;
        !self.sizing.choices.is_empty() && inputs.throttled.is_none() && inputs.is_consistent()
    }

    /// How to make the answer so; None without one.
    #[must_use]
    pub fn change(&self, plan: &SizingPlan<'_>) -> Option<ChangePlan> {
        let best = self.sizing.choices.first()?;
        let today = plan.instance.as_ref().map(|one| one.name.as_str());
        let instance = self.sizing.instance.map(|one| one.name.as_str()).filter(|name| Some(*name) != today);
        let name = &plan.source.volume;
        Some(change::plan(name, plan.today.as_ref(), &best.volumes, instance, plan.catalog))
    }
}
