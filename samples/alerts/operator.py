"""A Deployment that says whose it is, by a label, gets an alert for missing replicas: a PrometheusRule of its own.

PrometheusRule is somebody else's kind. Its classes in prometheus.py are made from its CRD, by
`python -m kopylite models --no-descriptions samples/alerts/crds/prometheusrules.yaml > samples/alerts/prometheus.py`.
"""

from __future__ import annotations

from kopylite import App, Context, Kind, Request, Unstructured
from kopylite.objects import controller_of
from samples.alerts.prometheus import Group, GroupRule, PrometheusRule, PrometheusRuleSpec

TEAM = "alerts.example.com/team"
Deployment = Kind("apps/v1", "Deployment")

app = App("alerts")


@app.reconciler(Deployment, owns=[PrometheusRule], labels=TEAM)
async def reconcile(ctx: Context, request: Request) -> None:
    deployment = await ctx.client.find(Deployment, request)
    if deployment is None or TEAM not in deployment.labels:  # one without the label is still read, from the server
        await retire(ctx, request)
        return

    def mutate(rule: PrometheusRule) -> None:
        rule.metadata.labels["release"] = "prometheus"  # what Prometheus selects by; other labels are others'
        rule.spec = PrometheusRuleSpec(groups=[Group(name="replicas", rules=[missing_replicas(deployment)])])

    await ctx.client.create_or_update(PrometheusRule, request, mutate, owner=deployment)


async def retire(ctx: Context, request: Request) -> None:
    """Delete the rule that was made for a Deployment, and no other of its name."""
    rule = await ctx.client.find(PrometheusRule, request)
    owner = controller_of(rule) if rule is not None else None
    if rule is not None and owner is not None and (owner.kind, owner.name) == (Deployment.kind, request.name):
        await ctx.client.delete(rule)


def missing_replicas(deployment: Unstructured) -> GroupRule:
    """Fires when a Deployment has fewer replicas than it should have, for as long as its annotation says."""
    where = f'namespace="{deployment.namespace}", deployment="{deployment.name}"'
    return GroupRule(
        alert="ReplicasMissing",
        expr=f"kube_deployment_status_replicas_available{{{where}}} < kube_deployment_spec_replicas{{{where}}}",
        for_=deployment.annotations.get("alerts.example.com/after", "10m"),
        labels={"team": deployment.labels[TEAM]},
        annotations={"summary": f"{deployment.namespace}/{deployment.name} has fewer replicas than it should have"},
    )
