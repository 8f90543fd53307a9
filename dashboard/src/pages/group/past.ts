/** The past of a group: a file of its own, for which nobody waits who looks at what is now. */
export { GroupCharts } from './charts/group-charts.tsx';
export { Decisions } from './decisions/decisions.tsx';
export { GroupWarnings } from './group-warnings.tsx';
