import { api } from '../../api.ts';
import { CopyButton } from '../../ui/copy-button.tsx';

const FORMATS = [
  { format: 'yaml', name: 'YAML' },
  { format: 'json', name: 'JSON' },
] as const;

/** Everything as a file, or copied. */
export function ExportSection() {
  return (
    <section class="export" aria-labelledby="export">
      <h2 id="export">Export</h2>
      <p class="help">
        Upstreams, groups and keys with every default. Of keys it holds hashes, of providers the
        names of secrets: nothing that opens anything.
      </p>
      {FORMATS.map(({ format, name }) => (
        <div class="actions" key={format}>
          <a
            class="button"
            href={`/admin/api/config?format=${format}`}
            download={`headgate.${format}`}
          >
            Download {name}
          </a>
          <CopyButton label={`Copy ${name}`} text={() => exported(format)} />
        </div>
      ))}
    </section>
  );
}

async function exported(format: 'yaml' | 'json'): Promise<string> {
  const result = await api('getConfig', { query: { format } });
  if (!result.ok) throw new Error(result.problem.detail);
  const body: unknown = result.body;
  return typeof body === 'string' ? body : `${JSON.stringify(body, null, 2)}\n`;
}
