#!/bin/sh
# Debian's Chromium and a Chinese font for the tests of pages, where this machine may install them; elsewhere those tests are skipped.
if command -v chromium >/dev/null && fc-list 2>/dev/null | grep -q 'Noto Sans CJK'; then exit 0; fi
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y chromium fonts-noto-cjk >/dev/null
fi
command -v chromium >/dev/null || echo "no Chromium: the tests of pages will be skipped (apt-get install chromium fonts-noto-cjk)"
