// The warnings of a write, and when each is given: a part of docs/reference/errors.md.

export const warnings: Record<string, string> = {
  amount_low: 'A payment or refund is a hundredth of what is due: amounts are in minor units.',
  buyer_has_former_address:
    'The address of an attendee changed, but the buyer still has the former one. Needs `orders:read` or `orders:write`.',
  check_in_early: 'The event starts more than a day after the check-in.',
  due_after_event: 'The payment deadline is after the end of the event.',
  due_again: 'A refund made money due again, and reminders will ask for it.',
  expires_now: '`expire_now` cancels the order and its tickets within seconds.',
  has_offer: 'The person also holds an open offer of the waiting list, which keeps a second place.',
  hours_moved: 'The time zone of a published event changed and its start did not, so it starts at another local time.',
  name_taken: '`apply_event` makes an event that has the name of another one.',
  offset_not_of_zone: 'A time has an offset that the time zone of the event does not have then.',
  percent_off_low: 'A promo code takes off less than one percent.',
  person_repeated: 'Somebody of this name and address was registered within the last ten minutes.',
  price_kept: 'An attendee has another ticket type now, but keeps the former price.',
  price_low: 'The first price of an event is below 10.00: prices are in minor units.',
  received_before_order: 'The payment was received more than a day before the order was made.',
  reference_repeated: 'Another payment or refund has the same `external_reference`.',
  refunded_before_payment: 'The refund is more than a day older than the first payment.',
  ticket_at_former_address:
    'The address changed after the ticket was e-mailed. `resend_ticket` sends it to the new one.',
  ticket_given_away: 'A ticket with a price was registered without `payment_method`.',
  ticket_type_sold_out: 'The event has more places, but a ticket type stays sold out.',
  waiting_list_ended: 'The event was completed while people waited. They get no e-mail.',
  windows_stay:
    'The event moved, but its sales, promo codes or check-in points did not. `move` of `apply_event` moves them.',
}
