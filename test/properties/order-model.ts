// What an order ought to cost, worked out without the database: whole numbers in BigInt, half up on each ticket. In come
// prices, a percentage and what happens to the order; out comes the order as it must read.

export type Line = { price: bigint; discount: bigint; cancelled: boolean }

export type Bill = {
  lines: Line[]
  paid: bigint
  status: 'pending' | 'completed' | 'cancelled'
  subtotal: bigint
  discountTotal: bigint
}

/** The discount in minor units: `hundredths` of a per cent of the price, half up. */
export const discountOf = (price: bigint, hundredths: number) => (price * BigInt(hundredths) + 5000n) / 10_000n

export function newBill(lines: { price: bigint; discount: bigint }[]): Bill {
  const bill: Bill = {
    lines: lines.map((line) => ({ ...line, cancelled: false })),
    paid: 0n,
    status: 'pending',
    subtotal: 0n,
    discountTotal: 0n,
  }
  addUp(bill)
  return bill
}

/** What is still to be paid. */
export const due = (bill: Bill) => {
  const open = bill.subtotal - bill.discountTotal - bill.paid
  return bill.status === 'cancelled' || open < 0n ? 0n : open
}

export function pay(bill: Bill, amount: bigint): void {
  bill.paid += amount
  addUp(bill)
}

export function cancelTicket(bill: Bill, index: number): void {
  const line = bill.lines[index]
  if (line) line.cancelled = true
  addUp(bill)
}

/** The fields of the answer that are about money. */
export function asAnswered(bill: Bill) {
  return {
    status: bill.status,
    payment_status: paymentStatus(bill),
    subtotal: Number(bill.subtotal),
    discount_total: Number(bill.discountTotal),
    total: Number(bill.subtotal - bill.discountTotal),
    amount_paid: Number(bill.paid),
    amount_due: Number(due(bill)),
    attendees: bill.lines.map((line) => ({
      price: Number(line.price),
      discount: Number(line.discount),
      status: line.cancelled ? 'cancelled' : bill.status === 'completed' ? 'active' : 'awaiting_payment',
    })),
  }
}

/** An order without a ticket is cancelled and keeps what it cost; one of which nothing is due is completed. */
function addUp(bill: Bill): void {
  const standing = bill.lines.filter((line) => !line.cancelled)
  if (standing.length === 0) {
    bill.status = 'cancelled'
    return
  }
  bill.subtotal = standing.reduce((sum, line) => sum + line.price, 0n)
  bill.discountTotal = standing.reduce((sum, line) => sum + line.discount, 0n)
  if (bill.status === 'pending' && due(bill) === 0n) bill.status = 'completed'
}

function paymentStatus({ status, paid, subtotal, discountTotal }: Bill) {
  const total = subtotal - discountTotal
  if (status === 'pending') return paid === 0n ? 'awaiting_payment' : 'partially_paid'
  if (paid > (status === 'cancelled' ? 0n : total)) return 'refund_due'
  return paid === 0n ? 'not_required' : 'paid'
}
