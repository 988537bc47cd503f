// The message centre of a box.

import { type BoxContext, delaySlowResponse } from '../box-context.ts'
import { isRefusal } from '../faults.ts'
import { joinParts } from './join-parts.ts'
import { listenSmpp, type MessageCentre, SMPP_REFUSALS } from './smpp.ts'

export function listenSms({ deliveries, faults, pace, port }: BoxContext): Promise<MessageCentre> {
  const join = joinParts()
  return listenSmpp({
    port,
    async take(pdu) {
      await pace.turn(() => false)
      const to = `+${pdu.destination_addr}`
      const fault = faults.next('sms', to)?.name
      if (isRefusal(fault)) return SMPP_REFUSALS[fault]
      const text = join(pdu)
      if (text !== undefined) deliveries.add({ channel: 'sms', to, message_id: null, text })
      if (fault === 'slow') await delaySlowResponse()
      if (fault === 'garbage') return fault
      // `trickle` acts like `hang`, because slow bytes would block the answers to all other requests.
      if (fault === 'hang' || fault === 'trickle') return 'hang'
      return fault === 'reset_after_accept' ? 'cut' : 0
    },
  })
}
