import type { UpstreamInfo } from '../../model/upstream-view.ts';
import { may } from '../../session.ts';

interface NotUsedProps {
  readonly upstreams: readonly UpstreamInfo[];
  readonly isOpen: boolean;
  readonly edit: (upstream: UpstreamInfo) => void;
}

/** Built-in upstreams that have received no calls. */
export function NotUsed({ upstreams, isOpen, edit }: NotUsedProps) {
  if (upstreams.length === 0) return null;
  return (
    <details class="not-used" open={isOpen}>
      <summary>{upstreams.length} built in, not called yet</summary>
      <div class="table">
        <table>
          <thead>
            <tr>
              <th scope="col">Id</th>
              <th scope="col">Address</th>
              <th scope="col">Dialect</th>
              <th scope="col">Base URL here</th>
              <th scope="col">
                <span class="visually-hidden">Actions</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {upstreams.map((upstream) => (
              <tr key={upstream.id}>
                <th scope="row">{upstream.id}</th>
                <td>{upstream.base_url}</td>
                <td>{upstream.dialect}</td>
                <td>
                  <code>
                    {location.origin}/{upstream.id}
                    {upstream.openai_at}
                  </code>
                </td>
                <td>
                  {may('admin') && (
                    <button type="button" class="quiet" onClick={() => edit(upstream)}>
                      Edit<span class="visually-hidden"> {upstream.id}</span>
                    </button>
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </details>
  );
}
