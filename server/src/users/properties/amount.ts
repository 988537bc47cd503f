// Money is counted in exact billionths; floating point would lose cents after enough purchases.

const DECIMALS = 9
const UNIT = 10n ** BigInt(DECIMALS)

export function parseAmount(text: string): bigint {
  const negative = text.startsWith('-')
  const [whole = '0', fraction = ''] = (negative ? text.slice(1) : text).split('.')
  const units = BigInt(whole) * UNIT + BigInt(fraction.slice(0, DECIMALS).padEnd(DECIMALS, '0'))
  return negative ? -units : units
}

export function formatAmount(units: bigint): string {
  const sign = units < 0n ? '-' : ''
  const positive = units < 0n ? -units : units
  const fraction = (positive % UNIT).toString().padStart(DECIMALS, '0').replace(/0+$/, '')
  return `${sign}${positive / UNIT}${fraction && `.${fraction}`}`
}

export const multiplyAmount = (text: string, count: number) => parseAmount(text) * BigInt(count)
