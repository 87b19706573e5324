// Decimals of currencies by ISO 4217, as the database has them: a test holds both together, since nothing is imported into the browser.

const none = 'BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF'.split(' ')
const three = 'BHD IQD JOD KWD LYD OMR TND'.split(' ')

export const decimalsOf = (currency: string): number => (none.includes(currency) ? 0 : three.includes(currency) ? 3 : 2)
