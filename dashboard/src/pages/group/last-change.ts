import { api } from '../../api.ts';

/** Describes the last change of the configuration, after a request failed because of it. */
export async function lastChangeOf(name: string): Promise<string> {
  const result = await api('GET /audit', { query: { limit: 1 } });
  const [entry] = result.ok ? result.body.entries : [];
  if (entry === undefined) return `The configuration changed. Check ${name}, then try again.`;
  const changes = entry.changes.map(
    ({ path, from, to }) => `${path} from ${JSON.stringify(from)} to ${JSON.stringify(to)}`,
  );
  return `Nothing was changed, because ${entry.actor} changed the configuration first: ${
    changes.slice(0, 3).join(', ') || entry.action
  }. Try again if your change still applies.`;
}
