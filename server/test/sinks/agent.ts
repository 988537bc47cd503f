import { Agent, type AgentOptions } from 'node:https'
import type { ScriptedProvider } from './scripted.ts'

/** For other people's clients: whatever name they ask for, the stand-in answers, with a certificate for it. */
export function agentTo({ port, route }: Pick<ScriptedProvider, 'port' | 'route'>, options: AgentOptions = {}): Agent {
  const agent = new Agent({ ...options, ca: route.ca })
  const createConnection = agent.createConnection.bind(agent)
  agent.createConnection = ({ host, ...asked }, done) =>
    createConnection({ ...asked, host: '127.0.0.1', port, servername: host as string }, done)
  return agent
}
