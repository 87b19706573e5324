// What an order must cost, worked out without the database: whole numbers in BigInt. A percentage is rounded half up on each ticket, an
// amount is spread over them.

export type Line = { price: bigint; discount: bigint; cancelled: boolean }

export type OrderModel = {
  lines: Line[]
  /** What was received, without what was voided. */
  paid: bigint
  refunded: bigint
  status: 'pending' | 'completed' | 'cancelled'
  subtotal: bigint
  discountTotal: bigint
}

/** The discount in minor units: `hundredths` of a per cent of the price, half up. */
export const discountOf = (price: bigint, hundredths: number) => (price * BigInt(hundredths) + 5000n) / 10_000n

/** Of an amount off, the share of each ticket: in proportion to its price, the units left over to the largest remainders, first come. */
export function sharesOf(prices: bigint[], amountOff: bigint): bigint[] {
  const subtotal = prices.reduce((sum, price) => sum + price, 0n)
  if (subtotal === 0n) return prices
  const whole = amountOff < subtotal ? amountOff : subtotal
  const shares = prices.map((price) => (price * whole) / subtotal)
  const remainder = (i: number) => ((prices[i] ?? 0n) * whole) % subtotal
  const places = [...prices.keys()].sort(
    (a, b) => Number(remainder(b) > remainder(a)) - Number(remainder(b) < remainder(a)) || a - b,
  )
  const left = whole - shares.reduce((sum, share) => sum + share, 0n)
  for (const i of places.slice(0, Number(left))) shares[i] = (shares[i] ?? 0n) + 1n
  return shares
}

export function newOrderModel(lines: { price: bigint; discount: bigint }[]): OrderModel {
  const model: OrderModel = {
    lines: lines.map((line) => ({ ...line, cancelled: false })),
    paid: 0n,
    refunded: 0n,
    status: 'pending',
    subtotal: 0n,
    discountTotal: 0n,
  }
  addUp(model)
  return model
}

/** What is still to be paid: money received less money returned decides. */
export const due = (model: OrderModel) => {
  const open = model.subtotal - model.discountTotal - model.paid + model.refunded
  return model.status === 'cancelled' || open < 0n ? 0n : open
}

export function pay(model: OrderModel, amount: bigint): void {
  model.paid += amount
  addUp(model)
}

export function voidPayment(model: OrderModel, amount: bigint): void {
  model.paid -= amount
}

export function refund(model: OrderModel, amount: bigint): void {
  model.refunded += amount
}

export function cancelTicket(model: OrderModel, index: number): void {
  const line = model.lines[index]
  if (line) line.cancelled = true
  addUp(model)
}

/** The fields of the answer that are about money. */
export function asAnswered(model: OrderModel) {
  return {
    status: model.status,
    payment_status: paymentStatus(model),
    subtotal: Number(model.subtotal),
    discount_total: Number(model.discountTotal),
    total: Number(model.subtotal - model.discountTotal),
    amount_paid: Number(model.paid),
    amount_due: Number(due(model)),
    amount_refunded: Number(model.refunded),
    attendees: model.lines.map((line) => ({
      price: Number(line.price),
      discount: Number(line.discount),
      status: line.cancelled ? 'cancelled' : model.status === 'completed' ? 'active' : 'awaiting_payment',
    })),
  }
}

/** An order without a ticket is cancelled and keeps what it cost; one of which nothing is due is completed. */
function addUp(model: OrderModel): void {
  const standing = model.lines.filter((line) => !line.cancelled)
  if (standing.length === 0) {
    model.status = 'cancelled'
    return
  }
  model.subtotal = standing.reduce((sum, line) => sum + line.price, 0n)
  model.discountTotal = standing.reduce((sum, line) => sum + line.discount, 0n)
  if (model.status === 'pending' && due(model) === 0n) model.status = 'completed'
}

function paymentStatus(model: OrderModel) {
  const { status, paid, refunded, subtotal, discountTotal } = model
  const kept = paid - refunded
  if (status === 'pending' || due(model) > 0n) return kept === 0n ? 'awaiting_payment' : 'partially_paid'
  if (kept > (status === 'cancelled' ? 0n : subtotal - discountTotal)) return 'refund_due'
  if (paid === 0n) return 'not_required'
  return kept === 0n ? 'refunded' : 'paid'
}
