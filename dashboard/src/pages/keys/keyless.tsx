import { api } from '../../api.ts';
import { count, plural } from '../../format.ts';
import { When } from '../../ui/when.tsx';

export async function askKeyless() {
  const result = await api('GET /keyless-callers');
  return result.ok ? result.body : null;
}

type Keyless = NonNullable<Awaited<ReturnType<typeof askKeyless>>>;

/** Callers that would be refused if a gateway key were required. */
export function KeylessCallers({ of: keyless }: { readonly of: Keyless }) {
  const { callers, sums } = keyless;
  if (callers.length === 0) return null;
  return (
    <section class="keyless" aria-labelledby="keyless-title">
      <h2 id="keyless-title">Callers without a gateway key</h2>
      <p class="help">
        {callersText(sums)} in the last hour. They would be refused if a key were required. To
        migrate them one by one, set <code>require_key: false</code> in the configuration, and give
        them keys. Require a key when this list is empty.
      </p>
      <div
        class="table"
        tabIndex={0}
        role="region"
        aria-label="Table of callers without a gateway key"
      >
        <table>
          <thead>
            <tr>
              <th scope="col">Upstream</th>
              <th scope="col">Caller</th>
              <th scope="col" class="number">
                Calls
              </th>
              <th scope="col">Last</th>
            </tr>
          </thead>
          <tbody>
            {callers.map((one) => (
              <tr key={`${one.upstream} ${one.caller}`}>
                <th scope="row">{one.upstream}</th>
                <td>
                  {one.caller === null ? (
                    <span class="dim">all others</span>
                  ) : (
                    <code>{one.caller}</code>
                  )}
                </td>
                <td class="number">{count(one.calls)}</td>
                <td>
                  <When at={one.last_at} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function callersText({ callers, calls }: Keyless['sums']): string {
  return `${plural(callers, 'caller')} with ${plural(calls, 'call')}`;
}
