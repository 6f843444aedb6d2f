"""A shop: orders are checked, completed and converted between two versions before they are stored."""

from typing import Any

from pydantic import BaseModel

from kopylite import App, Context, CustomResource, Request, Review

app = App("shop")


class OrderSpec(BaseModel):
    customer: str
    items: dict[str, int] = {}
    currency: str | None = None


class OrderStatus(BaseModel):
    pieces: int | None = None


class Order(CustomResource[OrderSpec, OrderStatus], group="shop.example.com", version="v1"):
    """What somebody wants to buy."""


class OldOrderSpec(BaseModel):
    """Before v1, an order was of one thing; `more` holds what v1 added, so nothing is lost on the way back."""

    customer: str
    item: str | None = None
    count: int | None = None
    more: dict[str, int] | None = None
    currency: str | None = None


class OldOrder(
    CustomResource[OldOrderSpec, OrderStatus], group="shop.example.com", version="v1beta1", kind="Order", storage=False
):
    """An order of one thing."""


@app.mutator(Order)
async def complete(ctx: Context, review: Review[Order]) -> None:
    if review.object.spec.currency is None:
        review.object.spec.currency = "EUR"


@app.validator(Order, operations=("create", "update", "delete"))
async def check(ctx: Context, review: Review[Order]) -> None:
    if review.operation == "delete":
        return
    review.immutable("spec.customer")
    if not review.object.spec.items:
        review.warn("the order is empty")
    for name, count in review.object.spec.items.items():
        if count < 1:
            review.deny("at least one has to be ordered", field=f"spec.items.{name}")


@app.converter(Order, versions=[OldOrder])
def convert(order: Any, to: Any) -> Any:
    if to is OldOrder:
        spec: OrderSpec = order.spec
        old = OldOrderSpec(customer=spec.customer, currency=spec.currency)
        for name in sorted(spec.items):
            if old.item is None:
                old.item, old.count = name, spec.items[name]
            else:
                old.more = {**(old.more or {}), name: spec.items[name]}
        return OldOrder(spec=old, status=order.status)
    items = dict(order.spec.more or {})
    if order.spec.item is not None:
        items[order.spec.item] = 1 if order.spec.count is None else order.spec.count
    return Order(
        spec=OrderSpec(customer=order.spec.customer, items=items, currency=order.spec.currency), status=order.status
    )


@app.reconciler(Order)
async def reconcile(ctx: Context, request: Request) -> None:
    order = await ctx.client.find(Order, request)
    if order is not None:
        await ctx.client.patch_status(order, {"pieces": sum(order.spec.items.values())})
