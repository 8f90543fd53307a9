import type { CanaryReport } from './report-schema.ts';

const WIDTH = 100;

function wrapped(text: string, indent: string): string {
  const lines = [''];
  for (const word of text.split(' ')) {
    const line = lines.at(-1) ?? '';
    if (line !== '' && line.length + word.length + 1 > WIDTH - indent.length) lines.push(word);
    else lines[lines.length - 1] = line === '' ? word : `${line} ${word}`;
  }
  return lines.map((line) => indent + line).join('\n');
}

export function textOf(report: CanaryReport): string {
  const rows = report.checks.map(({ id, result, title, found, meaning }) =>
    result === 'skipped'
      ? `${id.padEnd(10)}skipped  ${found}`
      : [
          `${id.padEnd(10)}${result.padEnd(9)}${title}`,
          ...[found, `→ ${meaning}`].map((text) => wrapped(text, ' '.repeat(19))),
        ].join('\n'),
  );
  const { calls, calls_to_upstream: paid, admin_requests: admin } = report.sent;
  const sent = `Sent from ${report.started_at} to ${report.ended_at}: ${calls} calls, ${paid} of them to a provider, and ${admin} requests to the admin API.`;
  const left =
    report.groups_left.length === 0
      ? 'All groups of the run were removed.'
      : `Groups that could not be removed: ${report.groups_left.join(', ')}. The next run removes them.`;
  return [...rows, '', sent, left].join('\n');
}
