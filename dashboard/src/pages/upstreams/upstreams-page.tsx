import { useEffect, useState } from 'preact/hooks';
import { version } from '../../feed.ts';
import { isFound, isUsed, type UpstreamInfo } from '../../model/upstream-view.ts';
import { may } from '../../session.ts';
import { useQuery } from '../../ui/use-query.ts';
import { NotUsed } from './not-used.tsx';
import { UpstreamDialog } from './upstream-dialog.tsx';
import { UpstreamRow } from './upstream-row.tsx';
import { useUpstreams } from './use-upstreams.ts';
import './upstreams.css';

export function UpstreamsPage() {
  const { upstreams, etag, problem, again } = useUpstreams();
  const [query, setQuery] = useQuery();
  const [edited, setEdited] = useState<UpstreamInfo | 'new' | null>(
    query['add'] === undefined ? null : 'new',
  );
  const searched = query['q'] ?? '';
  const found = upstreams?.filter((one) => isFound(one, searched)) ?? [];
  const used = found.filter(isUsed);
  useEffect(again, [version.value]);
  return (
    <div class="upstreams">
      <header>
        <h1>Upstreams</h1>
        <input
          type="search"
          aria-label="Search upstreams"
          placeholder="id, address, dialect, group"
          value={searched}
          onInput={({ currentTarget }) => setQuery({ q: currentTarget.value })}
        />
        <button
          type="button"
          class="primary"
          disabled={!may('admin')}
          title={may('admin') ? undefined : 'Requires the admin role'}
          onClick={() => setEdited('new')}
        >
          Add upstream
        </button>
        <button type="button" onClick={again}>
          Refresh
        </button>
      </header>
      {problem !== null && <p role="alert">{problem.detail}</p>}
      <ul class="used" aria-busy={upstreams === null && problem === null}>
        {used.map((upstream) => (
          <UpstreamRow
            key={upstream.id}
            upstream={upstream}
            etag={etag}
            edit={() => setEdited(upstream)}
            changed={again}
          />
        ))}
      </ul>
      {upstreams !== null && used.length === 0 && (
        <p class="help">
          {searched === ''
            ? 'No upstream has been called or configured yet. Every provider below works without configuration. To point a client here, see '
            : 'No upstream in use matches. Check the list below, or see '}
          <a href="/admin/setup">Set-up</a>.
        </p>
      )}
      <NotUsed
        upstreams={found.filter((one) => !isUsed(one))}
        isOpen={searched !== ''}
        edit={setEdited}
      />
      {/* Until the list is loaded, a built-in upstream would look like a new one, which needs a URL. */}
      {edited !== null && upstreams !== null && (
        <UpstreamDialog
          upstream={edited === 'new' ? null : edited}
          known={upstreams}
          etag={etag}
          changed={again}
          close={(isChanged) => {
            setEdited(null);
            setQuery({ add: undefined });
            if (isChanged) again();
          }}
        />
      )}
    </div>
  );
}
