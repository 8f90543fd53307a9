import { api } from '../../api.ts';
import { groups } from '../../feed.ts';

/** Maximum of groups that are asked; with more the figures are said to be the least. */
const GROUPS_MAX = 20;

/** How many calls of a key wait and are in flight, as far as the groups in use tell. */
export async function callsOf(id: string) {
  // The key's own group holds the same calls, before they ask the others.
  const busy = groups.peek().map((group) => group.peek());
  const asked = busy.filter(({ queued, in_use }) => queued + in_use > 0);
  const answers = await Promise.all(
    asked.slice(0, GROUPS_MAX).map(async ({ name, queued }) => {
      const params = { name };
      const [leases, waiters] = await Promise.all([
        api('listLeases', { params }),
        queued === 0 ? null : api('listWaiters', { params }),
      ]);
      return {
        leases: leases.ok ? leases.body.leases.filter(({ caller }) => caller === id) : [],
        waiters:
          waiters?.ok === true ? waiters.body.waiters.filter(({ tenant }) => tenant === id) : [],
      };
    }),
  );
  const waiting = new Set(answers.flatMap(({ waiters }) => waiters.map(({ ticket }) => ticket)));
  // One call has a lease in each of its groups; the group with the most of them counts.
  const inFlight = Math.max(0, ...answers.map(({ leases }) => leases.length));
  return { waiting: waiting.size, inFlight, isPart: asked.length > GROUPS_MAX };
}
