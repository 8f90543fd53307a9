import { count } from '../../format.ts';
import { scopeEnd, scopeState, scopeWords, type ScopeView } from '../../model/scope-words.ts';
import type { GroupView } from '../../model/status.ts';
import { When } from '../../ui/when.tsx';
import './scope-rows.css';

/** A table of the calls that the upstream refuses while all others start. */
export function ScopeRows({ group: { scopes = [] } }: { readonly group: GroupView }) {
  if (scopes.length === 0) return null;
  return (
    <section>
      <h2 id="scopes-title">Upstream refuses these calls only</h2>
      <div class="table scopes" tabIndex={0} role="region" aria-labelledby="scopes-title">
        <table>
          <thead>
            <tr>
              <th scope="col">Calls</th>
              <th scope="col">State</th>
              <th scope="col">Ends</th>
              <th scope="col" class="number">
                Queued
              </th>
              <th scope="col">Message of the upstream</th>
            </tr>
          </thead>
          <tbody>
            {scopes.map((scope) => (
              <ScopeRow key={keyOf(scope)} scope={scope} />
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function ScopeRow({ scope }: { readonly scope: ScopeView }) {
  const end = scopeEnd(scope);
  const { about, member, queued, pause } = scope;
  return (
    <tr>
      <td>
        <bdi>{scopeWords(about)}</bdi>
        {member !== undefined && <small>at {member}</small>}
      </td>
      <td>{scopeState(scope)}</td>
      <td>{end === null ? '–' : <When at={end} />}</td>
      <td class="number">{count(queued)}</td>
      <td>
        <bdi>{pause?.message ?? '–'}</bdi>
      </td>
    </tr>
  );
}

function keyOf({ about, member = '' }: ScopeView): string {
  return `${scopeWords(about)} ${member}`;
}
