// Decimals of currencies, as ISO 4217 has them and as private.minor_units in the database. Those that `Intl` knows are of CLDR: what is usual
// in shops, which says 299000 minor units of HUF as 299,000 Ft.

const none = 'BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF'.split(' ')
const three = 'BHD IQD JOD KWD LYD OMR TND'.split(' ')

export const decimalsOf = (currency: string): number => (none.includes(currency) ? 0 : three.includes(currency) ? 3 : 2)

/** Options of `Intl.NumberFormat` for an amount in units of the currency. */
export function currencyStyle(currency: string): Intl.NumberFormatOptions {
  const decimals = decimalsOf(currency)
  return { style: 'currency', currency, minimumFractionDigits: decimals, maximumFractionDigits: decimals }
}
