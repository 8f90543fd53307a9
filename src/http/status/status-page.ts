import { html, raw } from 'hono/html';
import type { CallerGroup, CallerStatus } from '../../contract/caller-status.ts';

type Html = ReturnType<typeof html>;

const STYLE = `
:root { color-scheme: light dark; --line: light-dark(#d8dee4, #3d444d); --soft: light-dark(#59636e, #9198a1);
  --used: light-dark(#0969da, #4493f8); font: 16px/1.5 system-ui, sans-serif; }
body { max-width: 46rem; margin: 0 auto; padding: 1rem; }
h1 { font-size: 1.25rem; } h2 { font-size: 1.05rem; margin: 0; overflow-wrap: anywhere; }
section { border: 1px solid var(--line); border-radius: .5rem; padding: .75rem 1rem; margin: 1rem 0; overflow-x: auto; }
p { margin: .4rem 0; } .soft { color: var(--soft); }
table { border-collapse: collapse; width: 100%; } th, td { text-align: left; padding: .2rem .8rem .2rem 0; }
th { color: var(--soft); font-weight: 500; } td { border-top: 1px solid var(--line); }
.number { text-align: right; font-variant-numeric: tabular-nums; }
progress { width: 100%; accent-color: var(--used); }
form { display: flex; gap: .5rem; flex-wrap: wrap; align-items: end; }
label { display: grid; flex: 1 1 16rem; } input, button { font: inherit; padding: .35rem .6rem; }
`;

/** The page of a caller's own calls. It runs no script; the response says when it is to be read again. */
export function statusPage(status: CallerStatus): Promise<string> {
  const waiting = status.groups.reduce((sum, group) => sum + group.waiting.length, 0);
  const running = status.groups.reduce((sum, group) => sum + group.in_flight, 0);
  return page(html`
    <p>
      <strong>${status.key.id}</strong>: ${calls(running)} running, ${calls(waiting)} waiting.
      <span class="soft">As of ${clock(status.at)}, again every few seconds.</span>
    </p>
    ${status.groups.length === 0 ? html`<p>No group has a call of this key.</p>` : ''}
    ${status.groups.map(groupHtml)} ${missing(status)}
    ${
      status.may_use.length === 0
        ? ''
        : html`<p class="soft">This key may use: ${status.may_use.join(', ')}</p>`
    }
    <form method="post" action="/status">
      <button name="forget" value="1">Use another key</button>
    </form>
  `);
}

/** The page that asks for the key. */
export function keyPage(message: string | null): Promise<string> {
  return page(html`
    <p>Where your calls stand, and what your key may use. Nobody else's calls are shown.</p>
    ${message === null ? '' : html`<p role="alert">${message}</p>`}
    <form method="post" action="/status">
      <label>
        Your key
        <input name="key" type="password" required autocomplete="off" maxlength="4000" />
      </label>
      <button>Show</button>
    </form>
    <p class="soft">
      Programs send the key as they do with their calls, and get JSON:
      <code>curl -H "Authorization: Bearer $KEY" …/status</code>
    </p>
  `);
}

/** The policy of both: this style and this form, and nothing from anywhere. */
export async function pagePolicy(): Promise<string> {
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(STYLE));
  const hash = new Uint8Array(digest).toBase64();
  return `default-src 'none'; style-src 'sha256-${hash}'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'`;
}

async function page(content: Html): Promise<string> {
  const whole = await html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <title>Headgate: your calls</title>
        ${raw(`<style>${STYLE}</style>`)}
      </head>
      <body>
        <main>
          <h1>Headgate: your calls</h1>
          ${content}
        </main>
      </body>
    </html> `;
  return whole.toString();
}

function groupHtml(group: CallerGroup): Html {
  const { limits, slots_in_use: used } = group;
  const most = Math.min(limits.slots ?? Infinity, limits.slots_each ?? Infinity);
  return html`<section>
    <h2>${group.name}</h2>
    ${group.partition === null ? '' : html`<p class="soft">${group.partition}</p>`}
    <p>
      ${used} ${used === 1 ? 'slot' : 'slots'} in use by you,
      ${Number.isFinite(most) ? html`of ${most} at the most` : 'without a limit of slots'}.
      ${stateOf(group)}
    </p>
    ${
      Number.isFinite(most)
        ? html`<progress
            max="${Math.max(1, most)}"
            value="${used}"
            aria-label="Slots in use"
          ></progress>`
        : ''
    }
    ${limitsHtml(group)} ${group.waiting.length === 0 ? '' : waitingHtml(group)}
  </section>`;
}

function stateOf(group: CallerGroup): string {
  if (group.paused) return 'Paused by its operator.';
  if (group.paused_until !== null) {
    return `Paused until ${clock(group.paused_until)}: its provider wants no calls.`;
  }
  return group.draining ? 'It takes no new calls.' : '';
}

function limitsHtml({ limits }: CallerGroup): Html | '' {
  const all = [
    ...Object.entries(limits.rates).map(([name, rate]) => told(name, rate, '')),
    ...Object.entries(limits.budget_usd).map(([name, rate]) => told(name, rate, ' USD')),
  ];
  return all.length === 0 ? '' : html`<p class="soft">${all.join(' · ')}</p>`;
}

function told(
  name: string,
  { limit, left }: { readonly limit: number; readonly left: number | null },
  unit: string,
): string {
  const rest = left === null ? '' : `, ${round(left)}${unit} left`;
  return `${name.replaceAll('_', ' ')}: ${round(limit)}${unit}${rest}`;
}

function waitingHtml({ waiting }: CallerGroup): Html {
  return html`<table>
    <thead>
      <tr>
        <th scope="col" class="number">Ahead</th>
        <th scope="col" class="number">About</th>
        <th scope="col" class="number">Waited</th>
        <th scope="col">Lane</th>
        <th scope="col">Model</th>
      </tr>
    </thead>
    <tbody>
      ${waiting.map(
        (call) =>
          html`<tr>
            <td class="number">${call.position}</td>
            <td class="number">${seconds(call.estimate_ms)}</td>
            <td class="number">${seconds(call.waited_ms)}</td>
            <td>${call.lane}</td>
            <td>${call.model ?? call.upstream}</td>
          </tr>`,
      )}
    </tbody>
  </table>`;
}

function missing({ left_out: leftOut, unreachable }: CallerStatus): Html | '' {
  if (leftOut === 0 && unreachable.length === 0) return '';
  const out = leftOut === 0 ? '' : `${leftOut} more groups or partitions are not shown. `;
  const lost = unreachable.length === 0 ? '' : `Out of reach: ${unreachable.join(', ')}.`;
  return html`<p role="status">${out}${lost}</p>`;
}

function calls(count: number): string {
  return count === 1 ? '1 call' : `${count} calls`;
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}

/** The time of day in UTC. */
function clock(at: string): string {
  return `${at.slice(11, 19)} UTC`;
}
