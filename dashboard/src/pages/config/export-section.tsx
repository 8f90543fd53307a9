import { api } from '../../api.ts';
import { CopyButton } from '../../ui/copy-button.tsx';

const FORMATS = [
  { format: 'yaml', name: 'YAML' },
  { format: 'json', name: 'JSON' },
] as const;

export function ExportSection() {
  return (
    <section class="export" aria-labelledby="export">
      <h2 id="export">Export</h2>
      <p class="help">
        Upstreams, groups and keys with all defaults. The file contains hashes of gateway keys and
        names of secrets, but nothing that grants access.
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
  const result = await api('GET /config', { query: { format } });
  if (!result.ok) throw new Error(result.problem.detail);
  const body: unknown = result.body;
  return typeof body === 'string' ? body : `${JSON.stringify(body, null, 2)}\n`;
}
