import { api } from '../../api.ts';
import { groups } from '../../feed.ts';

/** Maximum of queried groups. If there are more, the numbers are lower bounds. */
const GROUPS_MAX = 20;

/** Number of queued calls and calls in flight of a key, as far as the queried groups report. */
export async function callsOf(id: string) {
  // The key's own group has the same calls, before they enter other groups.
  const busy = groups.peek().map((group) => group.peek());
  const asked = busy.filter(({ queued, in_use }) => queued + in_use > 0);
  const answers = await Promise.all(
    asked.slice(0, GROUPS_MAX).map(async ({ name, queued }) => {
      const params = { name };
      const [leases, waiters] = await Promise.all([
        api('GET /groups/{name}/leases', { params }),
        queued === 0 ? null : api('GET /groups/{name}/waiters', { params }),
      ]);
      return {
        leases: leases.ok ? leases.body.leases.filter(({ caller }) => caller === id) : [],
        waiters:
          waiters?.ok === true ? waiters.body.waiters.filter(({ tenant }) => tenant === id) : [],
      };
    }),
  );
  const waiting = new Set(answers.flatMap(({ waiters }) => waiters.map(({ ticket }) => ticket)));
  // A call has a lease in each of its groups, so the group with the most leases counts.
  const inFlight = Math.max(0, ...answers.map(({ leases }) => leases.length));
  return { waiting: waiting.size, inFlight, isPart: asked.length > GROUPS_MAX };
}
