import { api } from '../../api.ts';

/** Says who changed what, after a change was refused because somebody else's came first. */
export async function lastChangeOf(name: string): Promise<string> {
  const result = await api('listAudit', { query: { limit: 1 } });
  const [entry] = result.ok ? result.body.entries : [];
  if (entry === undefined) return `Somebody changed the configuration: look at ${name} again.`;
  const changes = entry.changes.map(
    ({ path, from, to }) => `${path} from ${JSON.stringify(from)} to ${JSON.stringify(to)}`,
  );
  return `Nothing was done, because ${entry.actor} changed the configuration meanwhile: ${
    changes.slice(0, 3).join(', ') || entry.action
  }. Do it again if it is still right.`;
}
