#include "CEmbeddedFiles.h"

static const struct apns_embedded_file files[] = {
  {"index.html", (const char[]) {
#embed "../../Page/index.html" suffix(, 0)
  }},
  {"icon.svg", (const char[]) {
#embed "../../Page/icon.svg" suffix(, 0)
  }},
  {"styles/base.css", (const char[]) {
#embed "../../Page/styles/base.css" suffix(, 0)
  }},
  {"styles/connections.css", (const char[]) {
#embed "../../Page/styles/connections.css" suffix(, 0)
  }},
  {"styles/controls.css", (const char[]) {
#embed "../../Page/styles/controls.css" suffix(, 0)
  }},
  {"styles/detail.css", (const char[]) {
#embed "../../Page/styles/detail.css" suffix(, 0)
  }},
  {"styles/devices.css", (const char[]) {
#embed "../../Page/styles/devices.css" suffix(, 0)
  }},
  {"styles/layout.css", (const char[]) {
#embed "../../Page/styles/layout.css" suffix(, 0)
  }},
  {"styles/list.css", (const char[]) {
#embed "../../Page/styles/list.css" suffix(, 0)
  }},
  {"styles/narrow.css", (const char[]) {
#embed "../../Page/styles/narrow.css" suffix(, 0)
  }},
  {"styles/overview.css", (const char[]) {
#embed "../../Page/styles/overview.css" suffix(, 0)
  }},
  {"styles/panels.css", (const char[]) {
#embed "../../Page/styles/panels.css" suffix(, 0)
  }},
  {"styles/preview.css", (const char[]) {
#embed "../../Page/styles/preview.css" suffix(, 0)
  }},
  {"styles/report.css", (const char[]) {
#embed "../../Page/styles/report.css" suffix(, 0)
  }},
  {"modules/api.js", (const char[]) {
#embed "../../Page/modules/api.js" suffix(, 0)
  }},
  {"modules/attempts.js", (const char[]) {
#embed "../../Page/modules/attempts.js" suffix(, 0)
  }},
  {"modules/bar.js", (const char[]) {
#embed "../../Page/modules/bar.js" suffix(, 0)
  }},
  {"modules/charts/delays.js", (const char[]) {
#embed "../../Page/modules/charts/delays.js" suffix(, 0)
  }},
  {"modules/charts/ranking.js", (const char[]) {
#embed "../../Page/modules/charts/ranking.js" suffix(, 0)
  }},
  {"modules/charts/scale.js", (const char[]) {
#embed "../../Page/modules/charts/scale.js" suffix(, 0)
  }},
  {"modules/charts/sparkline.js", (const char[]) {
#embed "../../Page/modules/charts/sparkline.js" suffix(, 0)
  }},
  {"modules/charts/stack.js", (const char[]) {
#embed "../../Page/modules/charts/stack.js" suffix(, 0)
  }},
  {"modules/charts/timechart.js", (const char[]) {
#embed "../../Page/modules/charts/timechart.js" suffix(, 0)
  }},
  {"modules/connections/bars.js", (const char[]) {
#embed "../../Page/modules/connections/bars.js" suffix(, 0)
  }},
  {"modules/connections/compare.js", (const char[]) {
#embed "../../Page/modules/connections/compare.js" suffix(, 0)
  }},
  {"modules/connections/frames.js", (const char[]) {
#embed "../../Page/modules/connections/frames.js" suffix(, 0)
  }},
  {"modules/connections/marks.js", (const char[]) {
#embed "../../Page/modules/connections/marks.js" suffix(, 0)
  }},
  {"modules/connections/track.js", (const char[]) {
#embed "../../Page/modules/connections/track.js" suffix(, 0)
  }},
  {"modules/connections/tracks.js", (const char[]) {
#embed "../../Page/modules/connections/tracks.js" suffix(, 0)
  }},
  {"modules/connections/window.js", (const char[]) {
#embed "../../Page/modules/connections/window.js" suffix(, 0)
  }},
  {"modules/clock.js", (const char[]) {
#embed "../../Page/modules/clock.js" suffix(, 0)
  }},
  {"modules/columns.js", (const char[]) {
#embed "../../Page/modules/columns.js" suffix(, 0)
  }},
  {"modules/compare.js", (const char[]) {
#embed "../../Page/modules/compare.js" suffix(, 0)
  }},
  {"modules/complete.js", (const char[]) {
#embed "../../Page/modules/complete.js" suffix(, 0)
  }},
  {"modules/composer.js", (const char[]) {
#embed "../../Page/modules/composer.js" suffix(, 0)
  }},
  {"modules/copy.js", (const char[]) {
#embed "../../Page/modules/copy.js" suffix(, 0)
  }},
  {"modules/countdown.js", (const char[]) {
#embed "../../Page/modules/countdown.js" suffix(, 0)
  }},
  {"modules/delivery.js", (const char[]) {
#embed "../../Page/modules/delivery.js" suffix(, 0)
  }},
  {"modules/detail.js", (const char[]) {
#embed "../../Page/modules/detail.js" suffix(, 0)
  }},
  {"modules/devices/channels.js", (const char[]) {
#embed "../../Page/modules/devices/channels.js" suffix(, 0)
  }},
  {"modules/devices/device.js", (const char[]) {
#embed "../../Page/modules/devices/device.js" suffix(, 0)
  }},
  {"modules/devices/history.js", (const char[]) {
#embed "../../Page/modules/devices/history.js" suffix(, 0)
  }},
  {"modules/devices/list.js", (const char[]) {
#embed "../../Page/modules/devices/list.js" suffix(, 0)
  }},
  {"modules/devices/phone.js", (const char[]) {
#embed "../../Page/modules/devices/phone.js" suffix(, 0)
  }},
  {"modules/devices/recent.js", (const char[]) {
#embed "../../Page/modules/devices/recent.js" suffix(, 0)
  }},
  {"modules/dialog.js", (const char[]) {
#embed "../../Page/modules/dialog.js" suffix(, 0)
  }},
  {"modules/dom.js", (const char[]) {
#embed "../../Page/modules/dom.js" suffix(, 0)
  }},
  {"modules/early.js", (const char[]) {
#embed "../../Page/modules/early.js" suffix(, 0)
  }},
  {"modules/explain.js", (const char[]) {
#embed "../../Page/modules/explain.js" suffix(, 0)
  }},
  {"modules/format.js", (const char[]) {
#embed "../../Page/modules/format.js" suffix(, 0)
  }},
  {"modules/gauge.js", (const char[]) {
#embed "../../Page/modules/gauge.js" suffix(, 0)
  }},
  {"modules/groups.js", (const char[]) {
#embed "../../Page/modules/groups.js" suffix(, 0)
  }},
  {"modules/highlight.js", (const char[]) {
#embed "../../Page/modules/highlight.js" suffix(, 0)
  }},
  {"modules/icons.js", (const char[]) {
#embed "../../Page/modules/icons.js" suffix(, 0)
  }},
  {"modules/inbox.js", (const char[]) {
#embed "../../Page/modules/inbox.js" suffix(, 0)
  }},
  {"modules/jsondiff.js", (const char[]) {
#embed "../../Page/modules/jsondiff.js" suffix(, 0)
  }},
  {"modules/jsontext.js", (const char[]) {
#embed "../../Page/modules/jsontext.js" suffix(, 0)
  }},
  {"modules/keys.js", (const char[]) {
#embed "../../Page/modules/keys.js" suffix(, 0)
  }},
  {"modules/latedetail.js", (const char[]) {
#embed "../../Page/modules/latedetail.js" suffix(, 0)
  }},
  {"modules/later.js", (const char[]) {
#embed "../../Page/modules/later.js" suffix(, 0)
  }},
  {"modules/libraries.js", (const char[]) {
#embed "../../Page/modules/libraries.js" suffix(, 0)
  }},
  {"modules/list.js", (const char[]) {
#embed "../../Page/modules/list.js" suffix(, 0)
  }},
  {"modules/live.js", (const char[]) {
#embed "../../Page/modules/live.js" suffix(, 0)
  }},
  {"modules/main.js", (const char[]) {
#embed "../../Page/modules/main.js" suffix(, 0)
  }},
  {"modules/outcomes.js", (const char[]) {
#embed "../../Page/modules/outcomes.js" suffix(, 0)
  }},
  {"modules/panels/clock.js", (const char[]) {
#embed "../../Page/modules/panels/clock.js" suffix(, 0)
  }},
  {"modules/panels/connect.js", (const char[]) {
#embed "../../Page/modules/panels/connect.js" suffix(, 0)
  }},
  {"modules/panels/connections.js", (const char[]) {
#embed "../../Page/modules/panels/connections.js" suffix(, 0)
  }},
  {"modules/panels/devices.js", (const char[]) {
#embed "../../Page/modules/panels/devices.js" suffix(, 0)
  }},
  {"modules/panels/faults.js", (const char[]) {
#embed "../../Page/modules/panels/faults.js" suffix(, 0)
  }},
  {"modules/panels/findings.js", (const char[]) {
#embed "../../Page/modules/panels/findings.js" suffix(, 0)
  }},
  {"modules/panels/overview.js", (const char[]) {
#embed "../../Page/modules/panels/overview.js" suffix(, 0)
  }},
  {"modules/panels/runs.js", (const char[]) {
#embed "../../Page/modules/panels/runs.js" suffix(, 0)
  }},
  {"modules/panels/parameter.js", (const char[]) {
#embed "../../Page/modules/panels/parameter.js" suffix(, 0)
  }},
  {"modules/panels/reasons.js", (const char[]) {
#embed "../../Page/modules/panels/reasons.js" suffix(, 0)
  }},
  {"modules/panels/reproduction.js", (const char[]) {
#embed "../../Page/modules/panels/reproduction.js" suffix(, 0)
  }},
  {"modules/panels/ruleform.js", (const char[]) {
#embed "../../Page/modules/panels/ruleform.js" suffix(, 0)
  }},
  {"modules/panels/samples.js", (const char[]) {
#embed "../../Page/modules/panels/samples.js" suffix(, 0)
  }},
  {"modules/preview/activity.js", (const char[]) {
#embed "../../Page/modules/preview/activity.js" suffix(, 0)
  }},
  {"modules/preview/alert.js", (const char[]) {
#embed "../../Page/modules/preview/alert.js" suffix(, 0)
  }},
  {"modules/preview/app.js", (const char[]) {
#embed "../../Page/modules/preview/app.js" suffix(, 0)
  }},
  {"modules/preview/calls.js", (const char[]) {
#embed "../../Page/modules/preview/calls.js" suffix(, 0)
  }},
  {"modules/preview/display.js", (const char[]) {
#embed "../../Page/modules/preview/display.js" suffix(, 0)
  }},
  {"modules/preview/outcome.js", (const char[]) {
#embed "../../Page/modules/preview/outcome.js" suffix(, 0)
  }},
  {"modules/preview/phone.js", (const char[]) {
#embed "../../Page/modules/preview/phone.js" suffix(, 0)
  }},
  {"modules/preview/plain.js", (const char[]) {
#embed "../../Page/modules/preview/plain.js" suffix(, 0)
  }},
  {"modules/preview/states.js", (const char[]) {
#embed "../../Page/modules/preview/states.js" suffix(, 0)
  }},
  {"modules/preview/preview.js", (const char[]) {
#embed "../../Page/modules/preview/preview.js" suffix(, 0)
  }},
  {"modules/menu.js", (const char[]) {
#embed "../../Page/modules/menu.js" suffix(, 0)
  }},
  {"modules/reachability.js", (const char[]) {
#embed "../../Page/modules/reachability.js" suffix(, 0)
  }},
  {"modules/records.js", (const char[]) {
#embed "../../Page/modules/records.js" suffix(, 0)
  }},
  {"modules/report/main.js", (const char[]) {
#embed "../../Page/modules/report/main.js" suffix(, 0)
  }},
  {"modules/report/panel.js", (const char[]) {
#embed "../../Page/modules/report/panel.js" suffix(, 0)
  }},
  {"modules/report/query.js", (const char[]) {
#embed "../../Page/modules/report/query.js" suffix(, 0)
  }},
  {"modules/report/source.js", (const char[]) {
#embed "../../Page/modules/report/source.js" suffix(, 0)
  }},
  {"modules/resend.js", (const char[]) {
#embed "../../Page/modules/resend.js" suffix(, 0)
  }},
  {"modules/route.js", (const char[]) {
#embed "../../Page/modules/route.js" suffix(, 0)
  }},
  {"modules/roving.js", (const char[]) {
#embed "../../Page/modules/roving.js" suffix(, 0)
  }},
  {"modules/row.js", (const char[]) {
#embed "../../Page/modules/row.js" suffix(, 0)
  }},
  {"modules/search.js", (const char[]) {
#embed "../../Page/modules/search.js" suffix(, 0)
  }},
  {"modules/selection.js", (const char[]) {
#embed "../../Page/modules/selection.js" suffix(, 0)
  }},
  {"modules/seq.js", (const char[]) {
#embed "../../Page/modules/seq.js" suffix(, 0)
  }},
  {"modules/settings.js", (const char[]) {
#embed "../../Page/modules/settings.js" suffix(, 0)
  }},
  {"modules/snapshot.js", (const char[]) {
#embed "../../Page/modules/snapshot.js" suffix(, 0)
  }},
  {"modules/splitter.js", (const char[]) {
#embed "../../Page/modules/splitter.js" suffix(, 0)
  }},
  {"modules/storestate.js", (const char[]) {
#embed "../../Page/modules/storestate.js" suffix(, 0)
  }},
  {"modules/suggestions.js", (const char[]) {
#embed "../../Page/modules/suggestions.js" suffix(, 0)
  }},
  {"modules/summary.js", (const char[]) {
#embed "../../Page/modules/summary.js" suffix(, 0)
  }},
  {"modules/tabs/auth.js", (const char[]) {
#embed "../../Page/modules/tabs/auth.js" suffix(, 0)
  }},
  {"modules/tabs/headers.js", (const char[]) {
#embed "../../Page/modules/tabs/headers.js" suffix(, 0)
  }},
  {"modules/tabs/payload.js", (const char[]) {
#embed "../../Page/modules/tabs/payload.js" suffix(, 0)
  }},
  {"modules/tabs/timeline.js", (const char[]) {
#embed "../../Page/modules/tabs/timeline.js" suffix(, 0)
  }},
  {"modules/tabs/verdict.js", (const char[]) {
#embed "../../Page/modules/tabs/verdict.js" suffix(, 0)
  }},
  {"modules/terms.js", (const char[]) {
#embed "../../Page/modules/terms.js" suffix(, 0)
  }},
  {"modules/theme.js", (const char[]) {
#embed "../../Page/modules/theme.js" suffix(, 0)
  }},
  {"modules/timerange.js", (const char[]) {
#embed "../../Page/modules/timerange.js" suffix(, 0)
  }},
  {"modules/toolbar.js", (const char[]) {
#embed "../../Page/modules/toolbar.js" suffix(, 0)
  }},
  {"modules/transfer.js", (const char[]) {
#embed "../../Page/modules/transfer.js" suffix(, 0)
  }},
  {"modules/views.js", (const char[]) {
#embed "../../Page/modules/views.js" suffix(, 0)
  }},
  {"modules/visible.js", (const char[]) {
#embed "../../Page/modules/visible.js" suffix(, 0)
  }},
  {"modules/waterfall.js", (const char[]) {
#embed "../../Page/modules/waterfall.js" suffix(, 0)
  }},
  {0, 0},
};

const struct apns_embedded_file *apns_page_files(void) { return files; }
