import type { SinkFailure } from '../../../src/sink/service.ts'
import type { Troubles } from '../contract.ts'

/** How everything that speaks HTTP goes wrong. */
export const httpTroubles: Omit<Troubles<SinkFailure>, 'refused' | 'gone'> = {
  busy: { status: 503 },
  lost: ['reset', 'cut', 'half', 'hang', 'trickle'],
  pauses: [
    [{ status: 429, headers: { 'retry-after': '7' } }, 7_000],
    [{ status: 503, headers: { 'retry-after': '120' } }, 120_000],
  ],
  noise: (secrets) => [
    ...[302, 400, 401, 403, 404, 410, 413, 429, 500, 503].map((status) => ({ status })),
    {
      status: 400,
      body: JSON.stringify({ reason: secrets, message: secrets, code: secrets, error: { status: secrets } }),
    },
  ],
}

export const http2Troubles: typeof httpTroubles = {
  ...httpTroubles,
  untouched: ['refuse', 'goaway'],
  goodbyes: ['goaway'],
}
