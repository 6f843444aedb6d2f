"""A shop: orders are checked, completed and converted between two versions before they are stored."""

from typing import Annotated, Any

from pydantic import BaseModel, Field

from kopylite import App, Context, CustomResource, Request, Review

app = App("shop")


class Line(BaseModel):
    name: str
    count: int = 1


class OrderSpec(BaseModel):
    customer: str
    items: Annotated[list[Line], Field(min_length=1)]
    currency: str | None = None


class OrderStatus(BaseModel):
    pieces: int | None = None


class Order(CustomResource[OrderSpec, OrderStatus], group="shop.example.com", version="v1"):
    """What somebody wants to buy."""


class OldOrderSpec(BaseModel):
    """Before v1, an order was of one thing; `more` holds what v1 added, so nothing is lost on the way back."""

    customer: str
    item: str
    count: int = 1
    more: list[Line] = []
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
    names = [line.name for line in review.object.spec.items]
    for index, line in enumerate(review.object.spec.items):
        if line.count < 1:
            review.deny("at least one has to be ordered", field=f"spec.items[{index}].count")
        if line.name in names[:index]:
            review.warn(f"{line.name} is ordered twice")


@app.converter(Order, versions=[OldOrder])
def convert(order: Any, to: Any) -> Any:
    spec = order.spec
    if to is OldOrder:
        first, *more = spec.items
        old = OldOrderSpec(
            customer=spec.customer, item=first.name, count=first.count, more=more, currency=spec.currency
        )
        return OldOrder(spec=old, status=order.status)
    items = [Line(name=spec.item, count=spec.count), *spec.more]
    return Order(spec=OrderSpec(customer=spec.customer, items=items, currency=spec.currency), status=order.status)


@app.reconciler(Order)
async def reconcile(ctx: Context, request: Request) -> None:
    order = await ctx.client.find(Order, request)
    if order is not None:
        await ctx.client.patch_status(order, {"pieces": sum(line.count for line in order.spec.items)})
