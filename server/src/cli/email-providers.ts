import { createDnsResolver } from '../channels/dns.ts'
import { checkProviders, type ProviderCheck } from '../email/inbox-providers/check.ts'
import type { CliCommand } from './command.ts'
import { table } from './print.ts'

export const emailProvidersCommands: CliCommand[] = [
  {
    name: 'email-providers check',
    summary: 'Compare the list of inbox providers with the mail hosts that DNS returns for each domain.',
    usage: '',
    examples: ['carillon email-providers check', 'carillon email-providers check --json'],
    async run({ config }) {
      const findings = await checkProviders(createDnsResolver(config.providers.email.resolver), config.inboxProviders)
      return { json: findings, text: summaryOf(findings), failed: findings.every(isUnanswered) }
    },
  },
]

const isUnanswered = ({ state }: ProviderCheck) => state === 'unanswered'

function summaryOf(findings: readonly ProviderCheck[]): string {
  const shown = findings.filter(({ state }) => state !== 'agrees' && state !== 'unanswered')
  const rows = shown.map(({ domain, provider, state, says, hosts }) => [
    domain,
    provider,
    says ?? state,
    hosts[0] ?? '',
  ])
  const unanswered = findings.filter(isUnanswered).length
  const agreed = `${findings.length - shown.length - unanswered} of ${findings.length} domains agree, ${unanswered} were not answered.`
  return rows.length === 0 ? agreed : `${table(['DOMAIN', 'LISTED AS', 'HOSTS SAY', 'FIRST HOST'], rows)}\n\n${agreed}`
}
