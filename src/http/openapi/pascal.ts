/** `ticket_type` as the name of a component: `TicketType`. */
export const pascal = (name: string): string =>
  name.replace(/(?:^|_)(\w)/g, (_, letter: string) => letter.toUpperCase())
