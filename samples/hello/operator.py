"""Answers every ConfigMap that holds a name with a greeting."""

from kopylite import App, Context, Kind, Request

ConfigMap = Kind("v1", "ConfigMap")
app = App("hello")


@app.reconciler(ConfigMap)
async def reconcile(ctx: Context, request: Request) -> None:
    config_map = await ctx.client.find(ConfigMap, request)
    if config_map is not None and "name" in config_map.get("data", {}):
        greeting = f"Hello, {config_map['data']['name']}!"
        await ctx.client.patch(config_map, {"data": {"greeting": greeting}})
