// Stand-ins of providers for tests: they remember all that they were asked, and go wrong for an address as they are told.

import type { ProviderRoute } from '../../src/channels/channel.ts'
import { certificateFor, type ServerCertificate } from '../../src/sink/certificate.ts'
import { listen, type SinkListener } from '../../src/sink/listener.ts'
import { react, type SinkFailure, type SinkRequest, type SinkService } from '../../src/sink/service.ts'

/** What the contract of channels needs of a stand-in. */
export type Scripted<Trouble> = {
  /** The next requests for this address go wrong in this way, one after the other. */
  script(address: string, ...troubles: Trouble[]): void
  /** How many requests came, whatever became of them. */
  requests(): number
  /** How many requests for each address were taken up, answered or not. */
  taken: Map<string, number>
  /** Connections that are open now. */
  open(): number
  close(): Promise<void>
}

export function createScripts<Trouble>() {
  const scripts = new Map<string, Trouble[]>()
  const taken = new Map<string, number>()
  return {
    taken,
    script: (address: string, ...troubles: Trouble[]) =>
      void scripts.set(address, [...(scripts.get(address) ?? []), ...troubles]),
    next: (address: string) => scripts.get(address)?.shift(),
    noteTaken: (address: string) => void taken.set(address, (taken.get(address) ?? 0) + 1),
  }
}

export type ScriptedProvider = Scripted<SinkFailure> &
  Omit<SinkListener, 'close'> & { route: ProviderRoute; asked: SinkRequest[] }

export type ScriptedProviderSettings = {
  hosts: readonly string[]
  /** Where several share one. */
  certificate?: ServerCertificate
  maxStreams?: number
  firstStreams?: number
  isHttp1?: boolean
}

export async function startProvider(
  { hosts, certificate = certificateFor(...hosts), ...settings }: ScriptedProviderSettings,
  serviceFor: (request: SinkRequest) => SinkService,
): Promise<ScriptedProvider> {
  const { taken, script, next, noteTaken } = createScripts<SinkFailure>()
  const asked: SinkRequest[] = []
  const listener = await listen({
    certificate,
    ...settings,
    handle(request) {
      asked.push(request)
      const service = serviceFor(request)
      const address = service.addressOf(request)
      const { reaction, isTaken } = react(service, request, next(address))
      if (isTaken) noteTaken(address)
      return reaction
    },
  })
  const at = { host: '127.0.0.1', port: listener.port }
  return {
    ...listener,
    route: { ca: certificate.cert, connect: Object.fromEntries(hosts.map((host) => [`https://${host}`, at])) },
    script,
    asked,
    requests: () => asked.length,
    taken,
  }
}
