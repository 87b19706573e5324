import { deliveries } from './deliveries.ts'
import { door } from './door.ts'
import { hosted } from './hosted.ts'
import { manyOrganisations } from './many-organisations.ts'
import { onSale } from './on-sale.ts'
import { readsAndLists } from './reads-and-lists.ts'

export const scenarios = [onSale, manyOrganisations, door, readsAndLists, deliveries, hosted]
