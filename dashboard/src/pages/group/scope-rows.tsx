import { count } from '../../format.ts';
import { scopeEnd, scopeState, scopeWords, type ScopeStatus } from '../../model/scope-words.ts';
import { When } from '../../ui/when.tsx';
import { Figure } from './figure.tsx';

/** Calls that the upstream refuses while all others start: which, their state, until when, and its words. */
export function ScopeRows({ scopes }: { readonly scopes: readonly ScopeStatus[] }) {
  return (
    <Figure name="Upstream refuses these calls only">
      <table class="table">
        <thead>
          <tr>
            <th scope="col">Calls</th>
            <th scope="col">State</th>
            <th scope="col">Ends</th>
            <th scope="col">Queued</th>
            <th scope="col">Message of the upstream</th>
          </tr>
        </thead>
        <tbody>
          {scopes.map((scope) => (
            <ScopeRow key={keyOf(scope)} scope={scope} />
          ))}
        </tbody>
      </table>
    </Figure>
  );
}

function ScopeRow({ scope }: { readonly scope: ScopeStatus }) {
  const end = scopeEnd(scope);
  const { about, member, queued, pause } = scope;
  return (
    <tr>
      <td>
        <bdi>{scopeWords(about)}</bdi>
        {member !== undefined && ` at ${member}`}
      </td>
      <td>{scopeState(scope)}</td>
      <td>{end === null ? '–' : <When at={end} />}</td>
      <td>{count(queued)}</td>
      <td>
        <bdi>{pause?.message ?? '–'}</bdi>
      </td>
    </tr>
  );
}

function keyOf({ about, member = '' }: ScopeStatus): string {
  return `${scopeWords(about)} ${member}`;
}
